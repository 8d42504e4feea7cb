"""What strangers write, made safe: depth, length, number, date and type are bounded here, and nowhere else.

One input of a stranger stops nobody else: each function returns a value within bounds, or a refusal that names the field.
It knows no field of Sluice.
"""
