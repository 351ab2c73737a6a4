EXTRA_DIST += packaging/Containerfile packaging/smcrd.spec packaging/kubernetes/README.md packaging/kubernetes/configmap.yaml \
	packaging/kubernetes/daemonset.yaml packaging/kubernetes/podmonitor.yaml packaging/kubernetes/sidecar.yaml
