"""The service over HTTP: thin routes on the engine."""

from coterie.errors.extras import require_extra

with require_extra("service", "the service"):
    from coterie.service.app.application import create_app
    from coterie.service.app.serving import serve
    from coterie.service.app.settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app", "serve"]
