"""Facts stay as recorded (R6): only `erase_root` may delete, by a setting local to its transaction."""

from django.db import migrations

TABLES = ("lineage_entry", "lineage_entryedit", "lineage_entryrest")

CREATE = """
CREATE FUNCTION console_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('console.erasing', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% of % is refused: it is a recorded fact', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;
"""
GUARD = "CREATE TRIGGER immutable BEFORE UPDATE OR DELETE ON {0} FOR EACH ROW EXECUTE FUNCTION console_refuse_change();"


class Migration(migrations.Migration):
    dependencies = [("lineage", "0001_initial")]
    operations = [
        migrations.RunSQL(CREATE, "DROP FUNCTION console_refuse_change();"),
        *(migrations.RunSQL(GUARD.format(table), f"DROP TRIGGER immutable ON {table};") for table in TABLES),
    ]
