EXTRA_DIST += packaging/apparmor/smcrd
EXTRA_DIST += packaging/selinux/README.md packaging/selinux/smcrd.te packaging/selinux/smcrd.fc packaging/selinux/smcrd.if
check_ONCE += tests/unit/check_selinux.sh
EXTRA_DIST += tests/unit/check_selinux.sh
EXTRA_DIST += packaging/Containerfile packaging/smcrd.spec packaging/kubernetes/README.md packaging/kubernetes/configmap.yaml \
	packaging/kubernetes/daemonset.yaml packaging/kubernetes/podmonitor.yaml packaging/kubernetes/sidecar.yaml
EXTRA_DIST += packaging/ansible/README.md packaging/ansible/playbook.yml packaging/ansible/roles/smcrd/defaults/main.yml \
	packaging/ansible/roles/smcrd/handlers/main.yml packaging/ansible/roles/smcrd/meta/main.yml \
	packaging/ansible/roles/smcrd/tasks/main.yml packaging/ansible/roles/smcrd/templates/smcrd.conf.j2
