"""Where every page and call lies."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

from console import api
from console.health import healthz, readyz
from console.mcp import server as mcp
from console.metrics import metrics
from console.pages.account import account, account_password, account_token, account_token_revoked
from console.pages.approvals import approval_decided, approval_diff, approvals, approvals_parts, rule_ended
from console.pages.attachment import attachment, attachment_file
from console.pages.beginnings import new_document, new_root
from console.pages.board import board, board_parts
from console.pages.conversation import (
    conversation,
    conversation_entries,
    conversation_entry,
    conversation_parts,
    entry_image,
)
from console.pages.document import document
from console.pages.memory import memory, memory_changed, proposal_decided
from console.pages.palette import palette
from console.pages.people import people, people_changed
from console.pages.search import search_page
from console.pages.sent import sent
from console.pages.signin import one_time_link, sign_in, sign_out
from console.pages.tree import tree, tree_lines, tree_parts

urlpatterns: list[URLPattern | URLResolver] = [
    path("", board, name="board"),
    path("admin/", admin.site.urls),
    path("board/parts/", board_parts, name="board-parts"),
    path("palette/", palette, name="palette"),
    path("account/", account, name="account"),
    path("account/password/", account_password, name="account-password"),
    path("account/tokens/", account_token, name="account-token"),
    path("account/tokens/<int:token>/revoked/", account_token_revoked, name="account-token-revoked"),
    path("approvals/", approvals, name="approvals"),
    path("approvals/parts/", approvals_parts, name="approvals-parts"),
    path("approvals/<int:number>/diff/", approval_diff, name="approval-diff"),
    path("approvals/<int:number>/decided/", approval_decided, name="approval-decided"),
    path("rules/<int:number>/ended/", rule_ended, name="rule-ended"),
    path("attachments/<str:name>/", attachment, name="attachment"),
    path("attachments/<str:name>/file/", attachment_file, name="attachment-file"),
    path("conversations/<int:number>/", conversation, name="conversation"),
    path("conversations/<int:number>/documents/", new_document, name="new-document"),
    path("conversations/<int:number>/parts/", conversation_parts, name="conversation-parts"),
    path("conversations/<int:number>/entries/", conversation_entries, name="conversation-entries"),
    path("conversations/<int:number>/entries/<int:seq>/", conversation_entry, name="conversation-entry"),
    path("conversations/<int:number>/entries/<int:seq>/images/<int:image>/", entry_image, name="entry-image"),
    path("conversations/<int:number>/requests/", sent, name="sent"),
    path("documents/<int:number>/", document, name="document"),
    path("roots/new/", new_root, name="new-root"),
    path("roots/<int:number>/", tree, name="tree"),
    path("roots/<int:number>/people/", people, name="people"),
    path("roots/<int:number>/people/changes/", people_changed, name="people-changed"),
    path("roots/<int:number>/memory/", memory, name="memory"),
    path("roots/<int:number>/memory/changes/", memory_changed, name="memory-changed"),
    path("roots/<int:number>/memory/proposals/<int:proposal>/", proposal_decided, name="proposal-decided"),
    path("roots/<int:number>/lines/", tree_lines, name="tree-lines"),
    path("roots/<int:number>/parts/", tree_parts, name="tree-parts"),
    path("search/", search_page, name="search"),
    path("signin/", sign_in, name="signin"),
    path("signin/<str:secret>/", one_time_link, name="signin-link"),
    path("signout/", sign_out, name="signout"),
    path("mcp", mcp, name="mcp"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    *api.urls(),
]
