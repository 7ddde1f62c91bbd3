"""The couplet tab with all that newer weights can do, answered by hand, for tests in a browser."""

from couplet_toys import FORM
from page_browser import idle

SCROLLS = ["春满人间", "国泰民安", "万象更新", "前程似锦", "福满门庭"]
PAIRS = [("李白桃红春色好", "明山秀水画图新"), ("李树逢春开锦绣", "明灯照夜写文章")]
KNOWN = {"first": "李白桃红春意闹", "second": "明山秀水画图新", "distance": 2}


def composed():
    """Return an answer of /v1/compose."""
    couplets = [
        {"first": one, "second": other, "scroll": SCROLLS[0], "scrolls": SCROLLS, "score": -1.0, "form": FORM}
        for one, other in PAIRS
    ]
    couplets[0]["known"] = KNOWN
    couplets[1]["known"] = {"first": PAIRS[1][0], "second": PAIRS[1][1], "distance": 0}
    couplets[1]["relaxed"] = ["final_tone"]
    tones = {"first": [["ze"] * 7] * 2, "second": [["ping"] * 7] * 2}
    return {"couplets": couplets, "tones": tones}


def formed(request):
    """Return an answer of /v1/form: every 上联 is 仄, every 下联 平, and nothing is mirrored."""
    first, second = (request.post_data_json[side].replace(" ", "") for side in ("first", "second"))
    tones = {"first": ["ze"] * len(first), "second": ["ping"] * len(second)}
    return {
        "form": {**FORM, "repeats_mirrored": False},
        "tones": tones,
        "broken": ["mirror_repeats", "clause_ends"],
    }


def reversed_answer(request):
    """Return an answer of /v1/couplet to a 下联."""
    second = request.post_data_json["second"]
    first = ["天" * len(second), "海" * len(second)]
    tones = {"first": [["ze"] * len(second)] * 2, "second": ["ping"] * len(second)}
    predictions = [{"text": text, "score": -1.0, "form": FORM} for text in first]
    predictions[0]["known"] = {"first": first[0], "second": "海内存知己", "distance": 0}
    return {"second": second, "line": second, "predictions": predictions, "tones": tones}


def offer_all(page):
    """Let the server offer what only newer weights can do."""

    def models(route):
        response = route.fetch()
        answer = response.json()
        card = answer["models"][0]
        card["details"]["reverse"] = True
        card["further"] = {
            "/v1/compose": {"composes": True, "themes": ["茶"], "patterns": ["5", "7", "4+7"]},
            "/v1/form": {},
            "/v1/scroll": {},
        }
        route.fulfill(response=response, json=answer)

    def couplet(route):
        if "second" in route.request.post_data_json:
            route.fulfill(json=reversed_answer(route.request))
        else:
            route.continue_()

    page.route("**/v1/models", models)
    page.route("**/v1/couplet", couplet)
    page.route("**/v1/compose", lambda route: route.fulfill(json=composed()))
    page.route("**/v1/form", lambda route: route.fulfill(json=formed(route.request)))
    scrolls = {"scrolls": [{"text": text, "score": -1.0} for text in SCROLLS]}
    page.route("**/v1/scroll", lambda route: route.fulfill(json=scrolls))
    page.add_init_script("window.print = () => {}")  # a dialog would wait for somebody


def choose(page, way):
    page.get_by_label(way, exact=True).check(force=True)


def request_of(page, path, act):
    with page.expect_request(f"**/v1/{path}") as request:
        act()
    idle(page, "#couplet-ask")
    return request.value.post_data_json


def compose(page):
    choose(page, "With a name")
    request_of(page, "compose", lambda: page.get_by_role("button", name="李明").click())


def hung(page):
    read = "all => all.map(one => one.value || one.textContent).join('')"
    pair = page.locator("#couplet-pair")
    first, second = (pair.locator(f".{side} .character").evaluate_all(read) for side in ("first", "second"))
    return first, second


def scroll(page):
    return page.locator("#couplet-pair .scroll:not(.blank)").all_text_contents()
