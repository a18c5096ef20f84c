"""What `/metrics` tells Prometheus: work that waits and sizes, and `console.counters`; never a name or a text.

Counts of processes are added up over all of them through a folder that `up` gives them (PROMETHEUS_MULTIPROC_DIR);
numbers from the database are asked for when they are wanted.
"""

import os
from collections.abc import Iterator

from django.db import DatabaseError, connection
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from console.clock import now
from console.models import Touched
from lineage.models import Task
from lineage.models.tasks import TaskStatus

# Of large tables the planner's estimate is enough, and costs nothing.
ESTIMATED = ("lineage_conversation", "lineage_entry", "documents_document", "documents_editbatch")


def metrics(request: HttpRequest) -> HttpResponse:
    """All numbers in Prometheus' text form."""
    registry = CollectorRegistry()
    registry.register(DatabaseCollector())
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        MultiProcessCollector(registry)
        text = generate_latest(registry)
    else:
        text = generate_latest(registry) + generate_latest(REGISTRY)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


class DatabaseCollector(Collector):
    """Numbers that every process would tell alike."""

    def collect(self) -> Iterator[Metric]:
        try:
            found = [*self.tasks(), *self.board(), *self.sizes()]
        except DatabaseError:
            found = []
        yield GaugeMetricFamily("console_database_up", "1 when the database answered.", value=float(bool(found)))
        yield from found

    def tasks(self) -> Iterator[Metric]:
        """Work that has not ended, and how long the longest has been due."""
        live = GaugeMetricFamily("console_tasks", "Tasks that have not ended.", labels=["kind", "status"])
        ongoing = Task.objects.exclude(status=TaskStatus.TERMINAL).values_list("kind", "status")
        for kind, status, count in ongoing.annotate(count=Count("pk")).order_by("kind", "status"):
            live.add_metric([kind, status], count)
        yield live
        first = Task.objects.filter(status=TaskStatus.PENDING).order_by("due").values_list("due", flat=True).first()
        late = max(0.0, (now() - first).total_seconds()) if first else 0.0
        yield GaugeMetricFamily("console_task_late_seconds", "How long the oldest pending task is due.", value=late)

    def board(self) -> Iterator[Metric]:
        """What the board has not taken in yet."""
        yield GaugeMetricFamily("console_board_behind", "Changes the board waits for.", value=Touched.objects.count())

    def sizes(self) -> Iterator[Metric]:
        """How large the database is, and how many connections it serves."""
        rows = GaugeMetricFamily("console_rows", "Rows of a table, estimated.", labels=["table"])
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname, greatest(reltuples, 0) FROM pg_class WHERE relkind = 'r' AND relname = ANY(%s)",
                [list(ESTIMATED)],
            )
            for table, count in cursor.fetchall():
                rows.add_metric([table], count)
            cursor.execute(
                "SELECT pg_database_size(current_database()), "
                "(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())"
            )
            size, connections = cursor.fetchone()
        yield rows
        yield GaugeMetricFamily("console_database_bytes", "Size of the database.", value=size)
        yield GaugeMetricFamily("console_database_connections", "Connections to the database.", value=connections)
