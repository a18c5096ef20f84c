"""What happens in the sample tree. Invented; `writing` gives it the form of real transcripts."""

from datetime import datetime, timedelta

from console.demo.writing import Session

ROOT_TITLE = "Parcel tracking"
DOCUMENT_TITLE = "Release plan"

DOCUMENT = """# Release plan

What goes out on Thursday, who looks after it, and how we go back.

## Goes out

- Status page answers from one query
- Carrier webhooks are retried

## Order

1. Migrate the events table
2. Roll out the workers
3. Switch the status page

## Going back

To be written.

## Open questions

- Who watches the queue on Thursday evening?
"""

_STATUS = """def parcel_status(parcel):
    events = []
    for leg in parcel.legs.all():
        for event in leg.events.all():
            events.append(event)
    return sorted(events, key=lambda event: event.at)
"""
_STATUS_NEW = '''def parcel_status(parcel):
    """Every event of the parcel, oldest first, in one query."""
    return Event.objects.filter(leg__parcel=parcel).order_by("at", "pk")
'''


def slow_status_page(now: datetime) -> list[Session]:
    """A finished piece of work: a subagent, two rewinds, tests that fail and then pass."""
    main = Session("slow status page", now - timedelta(hours=3, minutes=12))
    main.title("Make the status page fast")
    main.ask("The status page of a parcel takes two seconds. Find out why and make it fast.")
    main.say(
        "I will look at the view and count its queries before I change anything.",
        thinking="Two seconds smells of a query per row. Measure first: the view, then the template.",
        end=False,
    )
    main.read("tracking/status.py", _STATUS)
    call = main.begin_call(
        "Task",
        {"description": "Count the queries", "prompt": "Count the queries of the status page for a parcel with 12 legs.",
         "subagent_type": "Explore"},
    )  # fmt: skip
    child = Session("count queries", main.start + main.clock, agent="c0unt1ng", owner=main.name)
    child.ask("Count the queries of the status page for a parcel with 12 legs.", after=1)
    child.run("pytest tests/test_status.py -k queries -q", "1 failed: expected 1 query, 38 were made")
    child.say("38 queries for 12 legs: one for the legs, one for the events of each leg, and 25 for carriers by name.")
    done = {"status": "completed", "agentId": child.agent, "totalDurationMs": 41_000, "totalToolUseCount": 1}
    main.end_call(call, "38 queries for 12 legs.\nagentId: c0unt1ng", extra=done, after=44)
    asked = main.say(
        "The page makes **38 queries** for a parcel with 12 legs. Two ways out:\n\n"
        "1. one query over the events, ordered in the database;\n2. keep the loops and prefetch.\n\nWhich one?",
    )
    main.ask("Prefetch, it is the smaller change.")
    main.edit("tracking/status.py", "parcel.legs.all()", 'parcel.legs.prefetch_related("events")', line=3)
    main.run("pytest tests/test_status.py -q", "1 failed: expected at most 3 queries, 27 were made", error=True)
    main.say("Prefetching leaves 27 queries, since carriers are still read one by one. I would not keep this.")
    main.rewind(asked)
    main.ask("Then the single query.", after=300)
    main.edit("tracking/status.py", _STATUS, _STATUS_NEW, line=1)
    main.run("pytest tests/test_status.py -q", "14 passed in 1.92s")
    tested = main.say(
        "One query now, `14 passed`. Measured on the copy of last week's data:\n\n"
        "| parcels | before | after |\n|---|---|---|\n| 12 legs | 2,040 ms | 31 ms |\n| 60 legs | 9,800 ms | 44 ms |\n",
    )
    main.rewind(asked)
    main.ask("Could the carrier push the status to us instead, so that nothing is computed?", after=600)
    main.say("It could, for the two carriers that offer it. The other five would still need the page. I would wait.")
    main.rewind(tested)
    main.ask("Good. Write down what we learned about the carriers' names.", after=120)
    main.say("Noted in the release plan: carriers are looked up by name in three more places.")
    return [main, child]


def carrier_webhooks(now: datetime) -> list[Session]:
    """A long session: a compaction, a provider's error, and a question that waits for a person."""
    main = Session("carrier webhooks", now - timedelta(hours=1, minutes=35))
    main.title("Retry carrier webhooks")
    main.ask("Webhooks of carriers are lost when our worker restarts. Make them durable.")
    main.say(
        "A row per webhook, written before we answer 200, and a worker that retries.",
        thinking="Row first, then answer.",
    )
    main.ask("Yes. Back off between tries, and give up after a day.")
    main.edit(
        "webhooks/models.py",
        "class Webhook(models.Model):\n    body = models.TextField()\n",
        "class Webhook(models.Model):\n    body = models.TextField()\n    tries = models.PositiveIntegerField(default=0)\n"
        "    due = models.DateTimeField(db_index=True)\n",
        line=8,
    )
    main.fail("API Error: 529 Overloaded. The provider asks to try again later.")
    main.ask("Go on.", after=65)
    main.run("pytest tests/test_webhooks.py -q", "9 passed in 3.11s")
    main.compact(
        "Webhooks are rows with `tries` and `due`; a worker takes what is due, backs off 1, 4, 16, 64 minutes."
    )
    main.ask("What happens when two workers take the same row?")
    main.edit(
        "webhooks/worker.py",
        "rows = Webhook.objects.filter(due__lte=now())[:20]",
        "rows = Webhook.objects.select_for_update(skip_locked=True).filter(due__lte=now())[:20]",
        line=31,
    )
    main.say("Each worker skips what another one holds. One thing is left, and it is not mine to decide.", end=False)
    main.begin_call(
        "AskUserQuestion",
        {
            "questions": [
                {
                    "question": "A carrier sends an event again when it times out. May the second one be dropped by its event id?",
                    "header": "Twice",
                    "multiSelect": False,
                    "options": [
                        {"label": "Drop it", "description": "One row per event id"},
                        {"label": "Keep both", "description": "Billing counts deliveries"},
                    ],
                }
            ]
        },
    )
    return [main]


def customs_forms(now: datetime, number: int) -> Session:
    """The session that plays live: its lines are written to the file one after the other."""
    live = Session(f"customs forms {number}", now)
    live.title("Customs forms as PDF" if number == 1 else f"Customs forms as PDF, run {number}")
    live.ask("Shipments outside the union need form CN23. Add an export as PDF.", after=0)
    live.say(
        "I will read how labels are made today, since the form shares the address block.",
        thinking="Labels are rendered from a template. The form has 14 fields; 9 of them exist on the shipment already.",
        end=False,
    )
    live.read(
        "shipping/labels.py",
        'def render_label(shipment):\n    return Template("label.html").render(shipment=shipment)\n',
    )
    live.say("The address block can be taken over as it is. Five fields are missing on the shipment.", end=False)
    live.edit(
        "shipping/models.py",
        "    weight = models.PositiveIntegerField()\n",
        "    weight = models.PositiveIntegerField()\n    contents = models.CharField(max_length=64)\n"
        "    origin = models.CharField(max_length=2)\n    value = models.PositiveIntegerField()\n",
        line=40,
    )
    live.run("python manage.py makemigrations shipping", "Migrations for 'shipping':\n  0017_customs.py")
    live.edit(
        "shipping/customs.py",
        "",
        "def render_cn23(shipment):\n    missing = [name for name in REQUIRED if not getattr(shipment, name)]\n"
        '    if missing:\n        raise MissingFields(missing)\n    return Template("cn23.html").render(shipment=shipment)\n',
        line=1,
    )
    live.run(
        "pytest tests/test_customs.py -q", "FAILED test_origin_is_two_letters\n1 failed, 6 passed in 0.84s", error=True
    )
    live.say("The origin was free text in old rows. I normalise it when the form is made.", end=False)
    live.edit("shipping/customs.py", "shipment.origin", "country_code(shipment.origin)", line=9)
    live.run("pytest tests/test_customs.py -q", "7 passed in 0.81s")
    live.say(
        "Form CN23 can be exported for every shipment outside the union. A shipment with a missing field is refused **by name** "
        "instead of printing a blank form.\n\nOpen: the customs number of the sender is not stored anywhere yet.",
    )
    return live


# What the agent writes into the document while the live run plays: (seconds after the start, old, new).
DOCUMENT_EDITS: tuple[tuple[float, str, str], ...] = (
    (8, "- Carrier webhooks are retried\n", "- Carrier webhooks are retried\n- Customs form CN23 as PDF\n"),
    (16, "1. Migrate the events table\n", "1. Migrate the events table (0016) and the shipments table (0017)\n"),
    (26, "To be written.\n", "1. Switch the status page back: setting `STATUS_FROM_EVENTS`\n"),
    (
        34,
        "setting `STATUS_FROM_EVENTS`\n",
        "setting `STATUS_FROM_EVENTS`\n2. Stop the workers; webhooks wait as rows\n",
    ),
    (44, "3. Switch the status page\n", "3. Switch the status page\n4. Turn on the customs export\n"),
    (52, "## Open questions\n", "## Open questions\n\n- Where is the sender's customs number kept?\n"),
)
