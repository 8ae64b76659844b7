#!/bin/sh
# Handrail with its example, on this machine only. `make demo` calls it, with PORT and DATA_DIR set.
# The example's outside world, a help desk with a mailbox, is a process of its own on the two ports after PORT; on the third is a provider
# of models that is played, for who wants to see one fail.
set -eu
cd "$(dirname "$0")/.."
case $PORT in
    '' | *[!0-9]* | ??????*) after=0 ;; # not a port; the settings say so
    *) after=$PORT ;;
esac
export HANDRAIL_DEMO=1
export HANDRAIL_DESK_URL="http://127.0.0.1:$((after + 1))" HANDRAIL_DESK_SMTP="127.0.0.1:$((after + 2))"
export HANDRAIL_PLAYED_URL="http://127.0.0.1:$((after + 3))/v1"
export SMTP_URL="smtp://127.0.0.1:$((after + 2))" # notifications lie in the desk's mailbox too
case $DATA_DIR in # a file by which the time of every process is moved: `manage.py misbehave a-day-late`
    /*) HANDRAIL_CLOCK_FILE=$DATA_DIR/clock ;;
    '~/'*) HANDRAIL_CLOCK_FILE=$HOME/${DATA_DIR#'~/'}/clock ;;
    *) HANDRAIL_CLOCK_FILE=$PWD/$DATA_DIR/clock ;;
esac
export HANDRAIL_CLOCK_FILE
exec .venv/bin/python manage.py up \
    --with 'desk=python -m examples.support_triage.desk --data {data}/desk --http-port {port+1} --smtp-port {port+2} --patience 3' \
    --with 'provider=python -m examples.provider --port {port+3}' \
    --tell HANDRAIL_DESK_URL --tell HANDRAIL_DESK_SMTP --tell HANDRAIL_CLOCK_FILE --tell HANDRAIL_PLAYED_URL \
    --migrate --first demo_seed \
    --once 'examples=python manage.py demo_runs'
