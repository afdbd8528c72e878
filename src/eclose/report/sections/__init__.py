"""The sections of a report, one file each: `Record -> Markup | None`."""
