"""Signing in by link and by name, out again, and what guessing costs (S1, S3)."""

from datetime import timedelta

import pytest
from django.test import Client

from console.access import who_is_user
from console.actions.people import make_signin_link, make_user
from console.actions.signins import PAIR_TRIES, WINDOW
from console.clock import moved
from console.models import SigninFailure, User
from tests.console.pages.conftest import Reader
from tests.factories import make_person

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery staple"


@pytest.fixture
def mira() -> User:
    user = make_user(username="mira")
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def browser() -> Client:
    return Client(headers={"host": "localhost"})


def _try(browser: Client, password: str, username: str = "mira", **more: str) -> int:
    answer = browser.post("/signin/", {"username": username, "password": password, **more})
    return answer.status_code


def test_name_and_password_sign_in(browser: Client, mira: User) -> None:
    answer = browser.post("/signin/", {"username": "mira", "password": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert browser.get("/account/").status_code == 200
    mira.refresh_from_db()
    assert mira.last_login is not None


def test_a_page_is_reached_again_after_signing_in(browser: Client, mira: User) -> None:
    sent = browser.get("/account/?a=1&b=2")
    assert sent.status_code == 302
    answer = browser.post(sent["Location"], {"username": "mira", "password": PASSWORD})
    assert answer["Location"] == "/account/?a=1&b=2"


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_signing_in_leads_nowhere_else(browser: Client, mira: User, elsewhere: str) -> None:
    answer = browser.post("/signin/", {"username": "mira", "password": PASSWORD, "next": elsewhere})
    assert answer["Location"] == "/"


def test_a_wrong_password_says_how_many_tries_are_left(browser: Client, mira: User) -> None:
    answer = browser.post("/signin/", {"username": "mira", "password": "wrong"})
    assert answer.status_code == 401
    assert "do not match. After 9 more tries you wait 15 minutes" in answer.content.decode()
    assert "wrong" not in answer.content.decode()


def test_guessing_is_slowed_down_and_a_link_still_opens(browser: Client, mira: User) -> None:
    for _ in range(PAIR_TRIES):
        assert _try(browser, "wrong") == 401
    refused = browser.post("/signin/", {"username": "mira", "password": PASSWORD})
    assert refused.status_code == 429
    assert "Wait 15 minutes" in refused.content.decode()
    other = Client(headers={"host": "localhost"}, REMOTE_ADDR="192.0.2.7")
    assert _try(other, PASSWORD) == 302
    link = make_signin_link(username="mira")
    assert browser.post(f"/signin/{link}/").status_code == 302


def test_tries_are_forgotten_after_the_window(browser: Client, mira: User) -> None:
    for _ in range(PAIR_TRIES):
        _try(browser, "wrong")
    with moved(WINDOW - timedelta(minutes=1)):
        assert _try(browser, PASSWORD) == 429
    with moved(WINDOW + timedelta(seconds=5)):
        assert _try(browser, PASSWORD) == 302


def test_success_forgives_the_tries_before_it(browser: Client, mira: User) -> None:
    for _ in range(PAIR_TRIES - 1):
        _try(browser, "wrong")
    assert _try(browser, PASSWORD) == 302
    assert not SigninFailure.objects.filter(key__startswith="pair:").exists()


def test_names_go_through_one_address_only_so_often(browser: Client) -> None:
    statuses = [_try(browser, "wrong", username=f"name{n}") for n in range(41)]
    assert statuses == [401] * 40 + [429]


def test_absent_and_wrong_look_the_same(browser: Client, mira: User) -> None:
    absent = browser.post("/signin/", {"username": "nobody", "password": "wrong"})
    wrong = browser.post("/signin/", {"username": "mira", "password": "wrong"})
    assert absent.status_code == wrong.status_code == 401
    assert absent.context["refusal"].message == wrong.context["refusal"].message


def test_looking_at_a_link_spends_nothing(browser: Client, mira: User) -> None:
    link = make_signin_link(username="mira")
    for method in (browser.get, browser.head, browser.get):
        assert method(f"/signin/{link}/").status_code == 200
    assert "Sign in as mira" in browser.get(f"/signin/{link}/").content.decode()
    assert browser.get("/account/").status_code == 302
    assert browser.post(f"/signin/{link}/").status_code == 302
    assert browser.get("/account/").status_code == 200


def test_a_link_works_once(browser: Client, mira: User) -> None:
    link = make_signin_link(username="mira")
    browser.post(f"/signin/{link}/")
    other = Client(headers={"host": "localhost"})
    for answer in (other.get(f"/signin/{link}/"), other.post(f"/signin/{link}/"), other.get("/signin/never-existed/")):
        assert answer.status_code == 404
        assert "manage.py signin" in answer.content.decode()
    assert other.get("/account/").status_code == 302


def test_a_link_needs_a_csrf_token(mira: User) -> None:
    strict = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    link = make_signin_link(username="mira")
    answer = strict.post(f"/signin/{link}/")
    assert answer.status_code == 403
    assert "The form was too old" in answer.content.decode()


def test_signing_out(reader: Reader) -> None:
    client = reader(make_person())
    assert client.get("/signout/").status_code == 405
    assert client.post("/signout/")["Location"] == "/signin/"
    assert client.get("/account/").status_code == 302


def test_the_pages_own_calls_get_json_when_signed_out(browser: Client) -> None:
    for headers in ({"Accept": "application/json"}, {"X-Part": "1"}):
        answer = browser.get("/palette/", headers=headers)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "signed_out"


def test_a_closed_account_is_out_at_once(reader: Reader, mira: User) -> None:
    client = reader(who_is_user(mira))
    assert client.get("/account/").status_code == 200
    mira.is_active = False
    mira.save()
    assert client.get("/account/").status_code == 302
