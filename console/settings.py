"""The one settings file. The environment is read in the block at its top; everything else follows from it.

Engines (DESIGN 2): PostgreSQL and Valkey, always. Without `DATABASE_URL` and `REDIS_URL` both live in the data directory.
"""

import json
import os
from pathlib import Path
from typing import Any

import dj_database_url
from django.utils.csp import CSP

from console import data

BASE_DIR = Path(__file__).resolve().parent.parent


def _listed(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in os.environ.get(name, default).split(",") if part.strip()]


def _switched(name: str) -> bool:
    return os.environ.get(name, "").lower() in {"1", "true", "yes", "on"}


# The environment, read once. README's table of settings lists exactly these names.
DATA_DIR = data.data_dir()  # CONSOLE_DATA
DATABASE_URL = os.environ.get("DATABASE_URL") or data.database_url()
ATTACHMENTS_DIR = os.environ.get("ATTACHMENTS_DIR") or DATA_DIR / "attachments"  # several machines share it
REDIS_URL = os.environ.get("REDIS_URL") or data.redis_url()
SECRET_KEY = os.environ.get("SECRET_KEY") or data.secret_key()
ALLOWED_HOSTS = _listed("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = _listed("TRUSTED_ORIGINS")
TLS = _switched("CONSOLE_TLS")  # a proxy in front speaks TLS: secure cookies, HSTS
DEBUG = _switched("DEBUG")
EXIT_AT = os.environ.get("CONSOLE_EXIT_AT", "")  # for tests: lineage.tasks.boundaries
LOG_LEVEL = os.environ.get("LOG_LEVEL", "INFO")
# Connections that one process pools, at most; 0: none. Servers and workers set their own default before they start:
# a command needs one connection, and a pool's threads would outlive it.
DATABASE_POOL = int(os.environ.get("DATABASE_POOL", "0"))
TIME_ZONE = os.environ.get("TIME_ZONE", "UTC")
MODELS = _listed(
    "CONSOLE_MODEL"
)  # the first answers where a conversation names none of them; empty: nobody answers here
ANTHROPIC_BASE_URL = os.environ.get("ANTHROPIC_BASE_URL", "")  # any server of the Messages API
ANTHROPIC_API_KEY = os.environ.get("ANTHROPIC_API_KEY", "")
# {"claude-sonnet-*": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}}: dollars per million tokens
MODEL_PRICES: dict[str, dict[str, float]] = json.loads(os.environ.get("CONSOLE_PRICES") or "{}")

INSTALLED_APPS = [
    "console.admin_app.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "servestatic.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "channels",
    "ninja",  # for the page of the API: else it would load its script from elsewhere
    "console",
    "documents",
    "lineage",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.pages.frame.frame",
            ]
        },
    }
]

# psycopg's own pool: a thread borrows a connection for a request or an action and gives it back (R11).
DATABASES: dict[str, Any] = {
    "default": {
        **dj_database_url.parse(DATABASE_URL),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"pool": {"min_size": 1, "max_size": DATABASE_POOL, "timeout": 10}} if DATABASE_POOL else {},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # redis-py reads with a time limit of 5 s by default: an idle subscriber would be dropped (DESIGN 12).
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}]},
    }
}

AUTH_USER_MODEL = "console.User"
LOGIN_URL = "/signin/"
LOGIN_REDIRECT_URL = "/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Cookies ignore ports, so two consoles on one host would sign each other out: names are the data directory's own (S3).
_COOKIES = data.cookie_suffix()
SESSION_COOKIE_NAME = f"session_{_COOKIES}"
CSRF_COOKIE_NAME = f"csrf_{_COOKIES}"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = TLS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = False  # the proxy redirects; health checks inside speak plain HTTP
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TLS else None
SECURE_HSTS_SECONDS = 31_536_000 if TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = TLS
SECURE_REFERRER_POLICY = "same-origin"
SILENCED_SYSTEM_CHECKS = ["security.W008"]  # SECURE_SSL_REDIRECT: see above
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF, CSP.NONCE],
    "style-src": [CSP.SELF, CSP.NONCE],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "static"
# Served from where they lie: modules import each other by relative URL, so names carry no hash, and browsers ask each time
# whether a file changed. The middleware is asynchronous: a synchronous one would hold a thread for every call that waits.
SERVESTATIC_USE_FINDERS = SERVESTATIC_AUTOREFRESH = True
SERVESTATIC_MAX_AGE = 0
SERVESTATIC_ALLOW_ALL_ORIGINS = False

# Size limits (S3). A frame of the socket and a body of HTTP have the same one: a whole document quoted twice.
DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

USE_TZ = True
LANGUAGE_CODE = "en"
USE_I18N = False

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"handlers": ["console"], "level": LOG_LEVEL, "propagate": False},
        "django.server": {"level": "WARNING"},
        # Two lines for every nudge, of which there may be hundreds a second.
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
    },
}
