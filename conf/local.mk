confdir = $(sysconfdir)/smcrd
dist_conf_DATA = conf/smcrd.conf.example
