"""The board's versions, one sequence over both tables, and everything that is there already to be folded (R9)."""

from django.db import migrations

FOLD_ALL = "INSERT INTO console_touched (conversation) SELECT id FROM lineage_conversation;"


class Migration(migrations.Migration):
    dependencies = [("console", "0003_board"), ("lineage", "0001_initial")]
    operations = [
        migrations.RunSQL("CREATE SEQUENCE console_board_version;", "DROP SEQUENCE console_board_version;"),
        migrations.RunSQL(FOLD_ALL, migrations.RunSQL.noop),
    ]
