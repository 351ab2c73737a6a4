dist_man_MANS += man/smcrctl.8
