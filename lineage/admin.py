"""The administration of trees: every row, its neighbours a click away, nothing to change what is recorded."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from console.access import who_is_user
from console.errors import DomainError
from console.models import User
from console.reading_admin import ReadOnly, linked, listed, on_page, register_rest
from lineage.actions.tasks import abort_task, resend_nudge, retry_task
from lineage.models import Conversation, Entry, Landing, Memory, Note, Root, Submission, Task, Usage


@admin.register(Root)
class RootAdmin(ReadOnly):
    list_display = ("conversation_link", "since", "main_link", "lists", "page")
    list_select_related = ("conversation", "main")
    search_fields = ("conversation__title",)
    ordering = ("-pk",)
    conversation_link = linked("conversation")
    main_link = linked("main", heading="main agent")
    lists = listed("conversation", "task", "submission", "landing", "memory", by="root", heading="in its tree")
    page = on_page


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    list_display = (
        "__str__",
        "kind",
        "state",
        "state_since",
        "root_link",
        "parent_link",
        "owner_link",
        "head",
        "lists",
        "page",
    )
    list_filter = ("kind", "state", "source", "touched")
    list_select_related = ("root__conversation", "parent", "owner")
    search_fields = ("title", "folder", "=id")
    ordering = ("-touched",)
    root_link = linked("root")
    parent_link = linked("parent")
    owner_link = linked("owner")
    lists = listed("entry", "task", "submission", by="conversation__id__exact", heading="its own")
    page = on_page


@admin.register(Entry)
class EntryAdmin(ReadOnly):
    """Entries are immutable; a trigger refuses changes too."""

    list_display = ("__str__", "kind", "author_link", "time", "prompt", "conversation_link")
    list_filter = ("kind", "time")
    list_select_related = ("conversation", "author")
    search_fields = ("=conversation__id", "prompt")
    ordering = ("-pk",)
    long: ClassVar[tuple[str, ...]] = ("model", "data")
    author_link = linked("author")
    conversation_link = linked("conversation")


@admin.register(Task)
class TaskAdmin(ReadOnly):
    """Durable work (L9). What is blocked or failed can be run again, what runs can be ended."""

    list_display = ("id", "kind", "status", "outcome", "conversation_link", "phase", "attempts", "due", "error_line")
    list_filter = ("status", "outcome", "kind", "foreground", "created")
    list_select_related = ("conversation",)
    search_fields = ("=id", "=conversation__id", "error", "subject")
    ordering = ("-pk",)
    long: ClassVar[tuple[str, ...]] = ("input", "facts", "result")
    actions = (
        "retry",
        "abort",
        "nudge",
    )
    conversation_link = linked("conversation")

    @admin.display(description="error")
    def error_line(self, row: Task) -> str:
        return (row.blocked or row.error)[:80]

    @admin.action(description="Run again")
    def retry(self, request: HttpRequest, tasks: QuerySet[Task]) -> None:
        _each(request, tasks, retry_task, "runs again")

    @admin.action(description="Abort")
    def abort(self, request: HttpRequest, tasks: QuerySet[Task]) -> None:
        _each(request, tasks, abort_task, "is being aborted")

    @admin.action(description="Nudge a worker")
    def nudge(self, request: HttpRequest, tasks: QuerySet[Task]) -> None:
        _each(request, tasks, resend_nudge, "was nudged")


def _each(request: HttpRequest, tasks: QuerySet[Task], act: Any, said: str) -> None:
    assert isinstance(request.user, User)
    for task in tasks:
        try:
            act(who=who_is_user(request.user), task=task.pk)
        except DomainError as refusal:
            messages.error(request, f"Task {task.pk}: {refusal.message}")
        else:
            messages.success(request, f"Task {task.pk} {said}.")


@admin.register(Submission)
class SubmissionAdmin(ReadOnly):
    list_display = ("id", "type", "status", "reason", "when_busy", "conversation_link", "author_link", "seq", "created")
    list_filter = ("type", "status", "when_busy", "created")
    list_select_related = ("conversation", "author")
    search_fields = ("=conversation__id", "=id")
    ordering = ("-pk",)
    long: ClassVar[tuple[str, ...]] = ("model", "data")
    conversation_link = linked("conversation")
    author_link = linked("author")


@admin.register(Note)
class NoteAdmin(ReadOnly):
    """Notes with their receipts (L21)."""

    list_display = ("submission_link", "source", "sender_link", "title", "included", "read")
    list_filter = ("source", "read")
    list_select_related = ("submission", "sender")
    search_fields = ("title", "text")
    ordering = ("-pk",)
    submission_link = linked("submission")
    sender_link = linked("sender")


@admin.register(Landing)
class LandingAdmin(ReadOnly):
    list_display = ("__str__", "target", "title", "feature", "conversation_link", "root_link", "commit_count", "time")
    list_filter = ("target", "restored", "time")
    list_select_related = ("conversation", "root__conversation")
    search_fields = ("sha", "title", "feature")
    ordering = ("-pk",)
    conversation_link = linked("conversation")
    root_link = linked("root")


@admin.register(Memory)
class MemoryAdmin(ReadOnly):
    """Operators write memory on its page; the limits hold there."""

    list_display = ("slug", "kind", "line", "root_link", "changed")
    list_filter = ("kind", "changed")
    list_select_related = ("root__conversation",)
    search_fields = ("slug", "line", "body")
    root_link = linked("root")


@admin.register(Usage)
class UsageAdmin(ReadOnly):
    list_display = ("message_id", "conversation_link", "model", "input_tokens", "output_tokens", "cost_micros", "time")
    list_filter = ("model", "time")
    list_select_related = ("conversation",)
    search_fields = ("message_id", "=conversation__id")
    ordering = ("-pk",)
    conversation_link = linked("conversation")


register_rest("lineage")
