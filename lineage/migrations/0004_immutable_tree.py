"""Landings and the history of the memory stay as recorded (R6)."""

from django.db import migrations

TABLES = ("lineage_landing", "lineage_memorychange")
GUARD = "CREATE TRIGGER immutable BEFORE UPDATE OR DELETE ON {0} FOR EACH ROW EXECUTE FUNCTION console_refuse_change();"


class Migration(migrations.Migration):
    dependencies = [("lineage", "0003_tree")]
    operations = [migrations.RunSQL(GUARD.format(table), f"DROP TRIGGER immutable ON {table};") for table in TABLES]
