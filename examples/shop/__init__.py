"""A small web shop whose three worker processes learn together which products a visitor clicks."""
