# make demo   everything that is needed, then Handrail with its example, at http://127.0.0.1:$(PORT)
# make test   everything that is needed, then every test
# make reset  empty the demo's data
# PORT and DATA_DIR may be given: make demo PORT=9000 DATA_DIR=~/handrail

PORT ?= 8000
DATA_DIR ?= data
PYTHON := .venv/bin/python
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: demo test reset help
# what other projects may have left in the environment means nothing here
ours := env -u DATABASE_URL -u VALKEY_URL -u REDIS_URL -u HOST -u DEBUG -u DJANGO_SETTINGS_MODULE -u PYTHONPATH -u PYTHONHOME -u PYTHONDONTWRITEBYTECODE

demo:
	@sh config/setup.sh demo
	@exec $(ours) PORT='$(PORT)' DATA_DIR='$(DATA_DIR)' sh config/demo.sh

test:
	@sh config/setup.sh test
	@exec env -u DJANGO_SETTINGS_MODULE -u PYTHONPATH -u PYTHONHOME -u PYTHONDONTWRITEBYTECODE $(PYTHON) -m tests.run

reset:
	@exec python3 -m config.datadir reset '$(DATA_DIR)'

help:
	@sed -n 's/^# //p' Makefile
