"""Django's administration with the console's own sign-in. Apart from `apps`, which may declare only one app."""

from django.contrib.admin.apps import AdminConfig


class ConsoleAdminConfig(AdminConfig):
    default_site = "console.reading_admin.ConsoleSite"
