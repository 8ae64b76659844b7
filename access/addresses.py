"""Where a request came from, by the rules about the proxy in front."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest

V6_HOME = 64  # bits: who has one address of such a network has all of them


def of(request: HttpRequest) -> str:
    """The address of whoever asks; "" if none is known. A header counts only from a proxy that is trusted, and then what it wrote last."""
    told = request.headers.get("X-Forwarded-For", "") if settings.TRUST_PROXY else ""
    return _plain(told.rsplit(",", 1)[-1]) or _plain(request.META.get("REMOTE_ADDR", ""))


def home(request: HttpRequest) -> str | None:
    """The same for counting: of IPv6 the network, for a machine there has as many addresses as it likes. None if it is unknown."""
    address = of(request)
    if ":" in address:
        return str(ipaddress.ip_network(f"{address}/{V6_HOME}", strict=False).network_address)
    return address or None


def _plain(text: str) -> str:
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return ""
    return str(getattr(address, "ipv4_mapped", None) or address).partition("%")[0]
