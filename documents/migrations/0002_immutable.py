"""Batches, and what is folded from them, stay as recorded (R6): only `erase_root` may delete, by a setting local to its transaction."""

from django.db import migrations

TABLES = ("documents_editbatch", "documents_snapshot", "documents_authorruns")
GUARD = "CREATE TRIGGER immutable BEFORE UPDATE OR DELETE ON {0} FOR EACH ROW EXECUTE FUNCTION console_refuse_change();"


class Migration(migrations.Migration):
    dependencies = [("documents", "0001_initial"), ("lineage", "0002_immutable")]
    operations = [migrations.RunSQL(GUARD.format(table), f"DROP TRIGGER immutable ON {table};") for table in TABLES]
