"""Attachments: uploaded once, extracted once into a sidecar, read page by page (D18-D22)."""
