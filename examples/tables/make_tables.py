"""Writes the tables of tables.md, which are made up: passengers.csv and wohnungen.csv. The same bytes every time.

    python3 examples/tables/make_tables.py examples/tables
"""

import math
import random
import sys


def passengers(draw):
    """Words, gaps and dates: who came through, by class, sex and age."""
    yield "id,class,name,sex,age,fare,port,boarded,survived"
    for i in range(1, 601):
        sex, level = draw.choice(["male", "male", "female"]), draw.choice([1, 2, 3, 3])
        age = max(0.5, round(draw.gauss(30, 13) * 2) / 2)
        fare = round(3 * math.exp(draw.gauss(3.4 - 0.6 * level, 0.5)), 2)
        port = draw.choice(["Southampton", "Southampton", "Cherbourg", "Queenstown"])
        chance = 2.8 * (sex == "female") - 0.9 * level - 0.03 * age + 1.6 + draw.gauss(0, 0.6)
        shown_age = "" if draw.random() < 0.2 else f"{age:g}"
        shown_port = "" if draw.random() < 0.02 else port
        yield (f'{i},{level},"Doe, {"Mr." if sex == "male" else "Ms."} ""P{i}""",{sex},{shown_age},{fare},{shown_port},'
               f'1912-04-{draw.randint(8, 11):02d},{"yes" if chance > 0 else "no"}')


def german(number, digits):
    return f"{number:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def flats(draw):
    """Semicolons, decimal commas, percent signs and names with spaces: prices of flats."""
    yield "Verkauft am;Fläche (m²);Zimmer;Lage;Nachlass;Preis (€)"
    for _ in range(500):
        area, rooms = draw.uniform(30, 180), draw.randint(1, 6)
        place = draw.choice(["Stadt", "Vorort", "Land"])
        discount = draw.choice([0, 2.5, 5, 10])
        price = 1500 * area + 9000 * rooms + {"Stadt": 90000, "Vorort": 40000, "Land": 0}[place]
        price *= (1 - discount / 100) * draw.gauss(1, 0.03)
        shown_area = "k. A." if draw.random() < 0.04 else german(area, 1)
        yield (f"2023-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d};{shown_area};{rooms};{place};"
               f"{german(discount, 1)} %;{german(price, 2)}")


for name, rows in ("passengers.csv", passengers(random.Random(3))), ("wohnungen.csv", flats(random.Random(5))):
    with open(f"{sys.argv[1]}/{name}", "w", encoding="utf-8", newline="\n") as file:
        file.writelines(row + "\n" for row in rows)
