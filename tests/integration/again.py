"""A script's cases once more, with other settings of the harness (harness.py says which there are)."""
import os
import runpy


def again(script, **settings):
    """In place of the rest of the script that calls it."""
    os.environ.update(settings)
    runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), script), run_name="__main__")


def over_sctp(script):
    """The user's stack is for one worker."""
    again(script, SMCRD_TRANSPORT="sctp", SMCRD_WORKERS="1")


def over_unix(script):
    again(script, SMCRD_LEGS="unix")


def in_tls(script, *cases):
    """These cases with secure = "required" for all services; without any, all of the script."""
    again(script, SMCRD_SECURE="required", SMCRD_CASE="|".join(cases))
