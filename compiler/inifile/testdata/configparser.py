"""Read texts, a list in JSON, as configparser does: each section with its values or what is wrong with them."""

import configparser
import json
import sys


def read(text: str) -> dict[str, object]:
    c = configparser.ConfigParser()
    try:
        c.read_string(text)
    except configparser.Error as e:
        return {"Text": text, "Error": str(e)}
    values = {}
    for section in c.sections():
        values[section] = []
        for option in c.options(section):
            try:
                values[section].append([option, c.get(section, option), ""])
            except configparser.Error as e:
                values[section].append([option, "", str(e)])
    return {"Text": text, "Values": values}


json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)
