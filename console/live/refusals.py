"""Close codes of `/live/`, and the refusals that are about the whole socket. Other codes are those of RFC 6455."""

from console.errors import DomainError

SIGNED_OUT = 4001  # the session ended, or the token is unknown, expired or revoked: sign in again
CLOSED = 4003  # the account or agent was closed: nothing that the client does helps
TOO_LARGE = 1009  # a frame above 32 MiB
TOO_SLOW = 1008  # the client asks, and does not read the answers
FOREIGN = 1008  # a page of another site; sent before the handshake, which answers it with 403
TRY_LATER = 1013  # nobody can be signed in at the moment: connect again after a while

GONE = {
    SIGNED_OUT: DomainError(
        "signed_out",
        "Your sign-in ended or your token is not valid. Sign in again, or ask for another token.",
        status=401,
    ),
    CLOSED: DomainError("closed", "This account was closed. Ask an administrator.", status=403),
}

UNAVAILABLE = DomainError(
    "unavailable", "The console cannot reach its database at the moment. Ask again in a few seconds.", status=503
)
