"""All routes: the app has no others."""

from coterie.service.app.requests.calls import Route
from coterie.service.app.routes import decisions, events, experiments, health, keys, personalizer, reads

ROUTES: tuple[Route, ...] = (
    *experiments.ROUTES,
    *decisions.ROUTES,
    *events.ROUTES,
    *reads.ROUTES,
    *keys.ROUTES,
    *personalizer.ROUTES,
    *health.ROUTES,
)
