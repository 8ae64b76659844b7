"""The API: one NinjaAPI, and the one place where a refusal of the domain becomes an RFC 9457 problem."""

from ninja import NinjaAPI

api = NinjaAPI(title="Handrail", version="1", docs_url=None, urls_namespace="api")  # the docs page would need scripts from elsewhere
