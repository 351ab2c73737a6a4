# Conversations of socket calls, directly and through two daemons; README.md has how to play one by hand.
check_REFEREE = tests/referee/check_referee.py tests/referee/check_faults.py
# The relay of the slow link is no part of the product, and mode "open" of check_referee.py opens the same way.
check_REFEREE_DELAY = tests/referee/check_referee_delay.py
check_REFEREE_DELAY += tests/referee/check_referee_transparent.py
check_REFEREE_SCTP = tests/referee/check_referee_sctp.py
check_TAP += $(check_REFEREE)
check_ONCE += $(check_REFEREE_DELAY)
if HAVE_USRSCTP
check_TAP += $(check_REFEREE_SCTP)
endif
EXTRA_DIST += tests/referee/README.md $(check_REFEREE) $(check_REFEREE_DELAY) $(check_REFEREE_SCTP) \
	tests/referee/draw.py tests/referee/live.py tests/referee/play.py tests/referee/referee.py \
	tests/referee/seeds.txt tests/referee/verdict.py tests/referee/ways.py
