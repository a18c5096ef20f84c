"""Accounts, one-time links, tokens and memberships (S1, S2)."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from console.access import Permission, Who, may, role_in, who_has_token, who_is_user
from console.actions.people import (
    FIRST_OPERATOR,
    LINK_LIFE,
    first_signin_link,
    make_signin_link,
    make_user,
    spend_signin_link,
    user_of_link,
)
from console.clock import moved, now
from console.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from console.models import Actor, ActorKind, Role, SigninLink, Token, User
from console.secrets import hashed
from lineage.access import root_for, visible_roots
from lineage.actions.members import set_member
from lineage.actions.roots import create_root
from lineage.actions.tokens import LONGEST_DAYS, make_token, revoke_token
from lineage.models import Conversation, Kind
from tests.factories import make_agent, make_person, make_root

pytestmark = pytest.mark.django_db


def test_the_first_link_signs_in_the_first_operator_until_someone_has() -> None:
    """S1: `up` prints a link at every start until someone has signed in."""
    secret = first_signin_link()
    again = first_signin_link()
    assert secret is not None
    assert again is not None
    assert user_of_link(secret=secret).username == FIRST_OPERATOR
    user = spend_signin_link(secret=secret)
    assert user.is_superuser
    user.last_login = now()
    user.save()
    assert first_signin_link() is None


def test_a_link_is_spent_once_and_looking_spends_nothing() -> None:
    """S1: GET shows, POST spends."""
    secret = make_signin_link(username="mira", create=True)
    assert user_of_link(secret=secret).username == "mira"
    assert spend_signin_link(secret=secret).username == "mira"
    for ask in (user_of_link, spend_signin_link):
        with pytest.raises(DomainError) as refused:
            ask(secret=secret)
        assert refused.value.code == "link_spent"


def test_a_link_dies_after_a_day_and_is_stored_as_a_hash() -> None:
    secret = make_signin_link(username="mira", create=True)
    assert SigninLink.objects.get().secret_hash == hashed(secret) != secret
    with moved(LINK_LIFE - timedelta(seconds=5)):
        assert user_of_link(secret=secret)
    with moved(LINK_LIFE + timedelta(seconds=5)), pytest.raises(DomainError):
        user_of_link(secret=secret)


def test_a_link_for_nobody_is_refused() -> None:
    with pytest.raises(NotFound):
        make_signin_link(username="nobody")


@pytest.mark.parametrize("name", ["", "a b", "x" * 81, "mira\n"])
def test_unusable_names_are_refused(name: str) -> None:
    assert make_user(username="x" * 80)
    with pytest.raises(Invalid):
        make_user(username=name)


def test_names_are_taken_without_regard_to_case() -> None:
    make_user(username="mira")
    with pytest.raises(Invalid):
        make_user(username="Mira")


def test_a_token_is_shown_once_and_kept_as_a_hash() -> None:
    """S2."""
    root = make_root()
    made = make_token(who=None, name="wren", root=root.pk)
    assert Token.objects.filter(secret_hash=hashed(made.secret)).exists()
    assert made.secret not in str(Token.objects.values().first())
    session = Conversation.objects.get(pk=made.token.conversation_id)
    assert (session.kind, session.title, session.root_id) == (Kind.SESSION, "wren", root.pk)
    who = who_has_token(hashed(made.secret))
    assert who is not None
    assert who.is_agent
    assert who.conversation == session.pk


@pytest.mark.parametrize(
    ("role", "kind"),
    [(Role.AGENT, ActorKind.AGENT), (Role.OPERATOR, ActorKind.CLIENT), (Role.VIEWER, ActorKind.CLIENT)],
)
def test_an_actor_is_an_agent_exactly_when_its_token_has_that_role(role: Role, kind: ActorKind) -> None:
    """D8."""
    who, _ = make_agent(make_root(), role=role)
    assert who.kind == kind


def test_a_token_sees_exactly_one_root() -> None:
    """S2."""
    mine, other = make_root(), make_root()
    who, _ = make_agent(mine)
    assert list(visible_roots(who)) == [mine]
    with pytest.raises(NotFound):
        root_for(who, other.pk)


def test_a_token_ends_by_revoking_and_by_time() -> None:
    owner = make_person()
    root = make_root(owner)
    made = make_token(who=owner, name="wren", root=root.pk, days=2)
    who = who_has_token(hashed(made.secret))
    assert who is not None
    with moved(timedelta(days=2, seconds=1)):
        assert who_has_token(hashed(made.secret)) is None
        assert role_in(who, root.pk) is None
    revoke_token(who=owner, token=made.token.pk)
    revoke_token(who=owner, token=made.token.pk)
    assert who_has_token(hashed(made.secret)) is None
    assert role_in(who, root.pk) is None


@pytest.mark.parametrize("days", [0, LONGEST_DAYS + 1])
def test_a_token_has_a_sensible_life(days: int) -> None:
    root = make_root()
    with pytest.raises(Invalid):
        make_token(who=None, name="wren", root=root.pk, days=days)


def test_only_an_agent_is_made_the_main_agent() -> None:
    """L26."""
    root = make_root()
    make_agent(root, main=True)
    root.refresh_from_db()
    assert root.main is not None
    with pytest.raises(Invalid):
        make_agent(root, role=Role.OPERATOR, main=True)


def test_tokens_make_no_roots_and_no_tokens() -> None:
    """S2."""
    who, _ = make_agent(make_root(), role=Role.OPERATOR)
    assert who.root is not None
    with pytest.raises(Forbidden):
        create_root(who=who, title="Mine")
    with pytest.raises(Forbidden):
        make_token(who=who, name="another", root=who.root)


def test_a_token_stays_in_its_tree() -> None:
    mine, other = make_root(), make_root()
    with pytest.raises(Invalid, match="not in the tree"):
        make_token(who=None, name="wren", root=mine.pk, conversation=other.pk)


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (None, set()),
        (Role.VIEWER, {Permission.READ}),
        (Role.OPERATOR, {Permission.READ, Permission.WRITE, Permission.DECIDE}),
        (Role.OWNER, set(Permission)),
    ],
)
def test_what_each_role_may_do(role: Role | None, allowed: set[Permission]) -> None:
    """S2."""
    owner, person = make_person("owner"), make_person("person")
    root = make_root(owner)
    set_member(who=owner, root=root.pk, actor=person.actor, role=role)
    assert {permission for permission in Permission if may(person, root.pk, permission)} == allowed
    assert list(visible_roots(person)) == ([root] if allowed else [])


def test_agents_read_and_write_and_do_not_decide() -> None:
    who, _ = make_agent(make_root())
    assert who.root is not None
    assert {p for p in Permission if may(who, who.root, p)} == {Permission.READ, Permission.WRITE}


def test_the_last_owner_stays() -> None:
    owner, person = make_person("owner"), make_person("person")
    root = make_root(owner)
    for role in (None, Role.VIEWER):
        with pytest.raises(Conflict):
            set_member(who=owner, root=root.pk, actor=owner.actor, role=role)
    set_member(who=owner, root=root.pk, actor=person.actor, role=Role.OWNER)
    set_member(who=person, root=root.pk, actor=owner.actor, role=None)
    assert role_in(owner, root.pk) is None


def test_only_owners_manage_members() -> None:
    owner, person = make_person("owner"), make_person("person")
    root = make_root(owner)
    with pytest.raises(NotFound):
        set_member(who=person, root=root.pk, actor=person.actor, role=Role.OWNER)
    set_member(who=owner, root=root.pk, actor=person.actor, role=Role.OPERATOR)
    with pytest.raises(Forbidden):
        set_member(who=person, root=root.pk, actor=person.actor, role=Role.OWNER)


def test_the_administrator_sees_every_root() -> None:
    admin: Who = make_person("admin", superuser=True)
    root = make_root()
    assert root_for(admin, root.pk, Permission.MANAGE) == root


def test_a_person_has_one_actor_and_an_agent_no_account() -> None:
    user = User.objects.get(pk=make_user(username="mira").pk)
    assert who_is_user(user).kind == ActorKind.PERSON
    with pytest.raises(IntegrityError), transaction.atomic():
        Actor.objects.create(kind=ActorKind.PERSON, name="ghost", created=now())


def test_making_a_root_twice_under_one_id_makes_one() -> None:
    """R4."""
    who = make_person()
    first = create_root(who=who, title="One", request_id="a")
    assert create_root(who=who, title="Two", request_id="a") == first


@pytest.mark.parametrize("title", ["", "  \n ", "x" * 201])
def test_a_root_needs_a_title_of_one_line(title: str) -> None:
    who = make_person()
    assert create_root(who=who, title="x" * 200).conversation.title == "x" * 200
    with pytest.raises(Invalid):
        create_root(who=who, title=title)
