EXTRA_DIST += packaging/Containerfile packaging/smcrd.spec
