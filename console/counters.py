"""What the processes count by themselves. With PROMETHEUS_MULTIPROC_DIR, which `up` sets, `/metrics` of any of them
tells the sums over all. Counting costs about a microsecond: never once per watcher."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("console_http_requests", "HTTP requests answered.", ["method", "status"])
SECONDS = Histogram(
    "console_http_seconds",
    "Seconds from a request's start to its answer.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
SOCKETS = Gauge("console_sockets", "WebSockets that are open.", multiprocess_mode="livesum")
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}  # clients can invent others


def count_request(*, method: str, status: int, seconds: float) -> None:
    """One request was answered."""
    REQUESTS.labels(method if method in METHODS else "other", str(status)).inc()
    SECONDS.observe(seconds)
