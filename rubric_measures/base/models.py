"""The base of the pydantic models of files; apart, as many a command reads JSON without any."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Record"]


class Record(BaseModel):
    """Base of the models of files: frozen, no coercion, unknown fields kept, our names and the file's accepted."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        strict=True,
        populate_by_name=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
    )
