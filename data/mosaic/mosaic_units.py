"""The documents of Mosaic Desk: what is written, who may read it, when it holds.

Everything here was written for this suite. The appliances are invented.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date

OPEN = date(2025, 1, 1)
SERVICE = "technician"


@dataclass(frozen=True)
class Fact:
    """What a document says on one need: a line, its value, and the line that limits it."""

    line: int
    value: str
    condition: int | None = None
    """The line that limits `line`; it stands right after it."""
    documented: bool = False
    """The condition must be on record before anybody acts: without a record, escalate."""

    @property
    def last(self) -> int:
        """The last line of the whole statement."""
        return self.line if self.condition is None else self.condition


@dataclass(frozen=True, eq=False)
class Unit:
    """One document, cut into nothing: one chunk, whose blocks are its lines."""

    doc: str
    topic: str
    card: dict[str, str]
    lines: dict[str, tuple[str, ...]]
    facts: dict[str, Fact] = field(default_factory=dict)
    version: str = "r1"
    family: str = "product-sheets"
    authority: str = "product-engineering"
    valid_from: date = OPEN
    valid_until: date | None = None
    acl: tuple[str, ...] | None = None
    """Who may see it; None is everybody."""

    @property
    def id(self) -> str:
        """The handle that lists, contexts and citations use."""
        return f"{self.doc}#1"

    def text(self, lang: str) -> str:
        """The whole document."""
        return "\n".join(self.lines[lang])

    def span(self, lang: str, first: int, last: int) -> tuple[int, int]:
        """Code points, end exclusive, of the lines `first` to `last`, both included."""
        start = sum(len(line) + 1 for line in self.lines[lang][:first])
        return start, start + len("\n".join(self.lines[lang][first : last + 1]))

    def holds(self, day: date) -> bool:
        """Whether it is in force on that day (validity is half-open)."""
        return self.valid_from <= day and (self.valid_until is None or day < self.valid_until)

    def seen_by(self, principals: tuple[str, ...]) -> bool:
        """Whether one of the principals may read it."""
        return self.acl is None or bool(set(self.acl) & set(principals))


def _unit(doc: str, topic: str, en: tuple[str, ...], zh: tuple[str, ...], **more: object) -> Unit:
    """A unit whose first line is its card."""
    card = {"en": en[0], "zh": zh[0]}
    return Unit(doc, topic, card, {"en": en[1:], "zh": zh[1:]}, **more)  # type: ignore[arg-type]


V8_SOUND = _unit(
    "v8-sound",
    "vacuum",
    (
        "V8 vacuum sound",
        "V8 vacuum, measured one metre away.",
        "Night mode stays at 52 decibels.",
    ),
    ("V8 吸尘器 声音", "V8 吸尘器，在一米处测得。", "夜间模式为 52 分贝。"),
    facts={"night-sound": Fact(1, "52 dB")},
)
V8_DUST = _unit(
    "v8-dust",
    "vacuum",
    (
        "V8 vacuum dust box",
        "Empty the dust box of the V8 vacuum when the red lamp is lit.",
        "Let the box dry for 24 hours.",
    ),
    ("V8 吸尘器 尘盒", "红灯亮起时清空 V8 吸尘器的尘盒。", "尘盒晾干 24 小时。"),
)

# No word of it is left in a query that has lost the model and the negation.
K31_BARE = _unit(
    "k31-bare",
    "kettle",
    ("K31 MK2 care", "K31 MK2 operated without a cartridge.", "Remove deposits every 4 weeks."),
    ("K31 MK2 保养", "K31 MK2 没有安装芯体的情况。", "每 4 周清理一次水碱。"),
    facts={"descale": Fact(1, "4 weeks")},
)
KETTLE_FILTER = _unit(
    "kettle-filter",
    "kettle",
    ("Kettle with filter", "Any kettle fitted with its filter.", "Descale every 12 weeks."),
    ("水壶 带滤芯", "装有滤芯的水壶。", "每 12 周除垢一次。"),
    facts={"descale": Fact(1, "12 weeks")},
)

T5_PROBE = _unit(
    "t5-probe",
    "dryer",
    (
        "Programme too short",
        "A coated probe in model T5 ends the programme too soon and leaves washing wet.",
        "Wipe the probe with vinegar every 20 loads.",
    ),
    (
        "程序 过短",
        "T5 机型的探头附着杂质后程序会过早结束，洗涤物仍湿。",
        "每 20 次使用后用醋擦拭探头。",
    ),
    facts={"early-stop": Fact(1, "20 loads")},
)
_T5_PARTS = (
    ("lamp", "Change the bulb.", "照明灯", "更换灯泡。"),
    ("feet", "Level all four.", "底脚", "调平四只底脚。"),
    ("panel", "Wipe with a cloth.", "面板", "用布擦净。"),
    ("handle", "Tighten two screws.", "把手", "拧紧两颗螺丝。"),
    ("cable", "Unroll it fully.", "电源线", "完全展开。"),
    ("hinge", "Swap sides if needed.", "铰链", "可换到另一侧。"),
    ("clock", "Set it in spring.", "时钟", "春季校准。"),
    ("shelf", "Slide it in flat.", "搁架", "水平插入。"),
    ("buzzer", "Mute it in the menu.", "蜂鸣器", "在菜单中静音。"),
    ("fan", "Brush the blades.", "风扇", "刷净叶片。"),
    ("belt", "Order a spare.", "皮带", "订购备件。"),
)
T5_NOTES = tuple(
    _unit(
        f"t5-{part}",
        "dryer",
        (f"T5 dryer {part}", f"T5 dryer, {part}.", advice),
        (f"T5 烘干机 {part_zh}", f"T5 烘干机，{part_zh}。", advice_zh),
        family="service-notes",
        authority="service-desk",
    )
    for part, advice, part_zh, advice_zh in _T5_PARTS
)

W20_DOSE = _unit(
    "w20-dose",
    "washer",
    (
        "W20 detergent",
        "W20 in soft water.",
        "Half a drum takes 35 ml of detergent.",
        "Ask a shop if tap supply at home is hard.",
    ),
    (
        "W20 洗涤剂",
        "W20 使用软水。",
        "半载衣物用洗涤剂 35 毫升。",
        "家用自来水偏硬时，请向门店咨询。",
    ),
    facts={"dose": Fact(1, "35 ml")},
)
W20_NEAR = (
    _unit(
        "w20-a-softener",
        "washer",
        ("W20 washer in soft water", "W20 washer, soft water.", "A half load needs no softener."),
        ("W20 洗衣机 软水", "W20 洗衣机 软水。", "半载衣量不用柔顺剂。"),
    ),
    _unit(
        "w20-b-rinse",
        "washer",
        ("W20 washer half load", "W20 washer, half load.", "Soft water: one more rinse."),
        ("W20 洗衣机 半载衣量", "W20 洗衣机 半载衣量。", "软水多漂洗一次。"),
    ),
    _unit(
        "w20-c-drawer",
        "washer",
        (
            "W20 washer detergent detergent",
            "W20 washer detergent drawer.",
            "Detergent to the left, away from water.",
        ),
        ("W20 洗衣机 洗涤剂 洗涤剂", "W20 洗衣机 洗涤剂盒。", "洗涤剂在 W20 左侧。"),
    ),
)
_LEAFLET = _unit(
    "w20-leaflet",
    "washer",
    (
        "Leaflet for the home",
        "Thank you for choosing us and for reading this leaflet to the very end before you begin.",
        "Keep children, pets and candles away, and keep the receipt with the guarantee card.",
        "Every W20 washer cleans well when detergent, water and load are chosen with some care.",
        "Soft towels, clean shirts and fresh sheets are half the joy of a tidy and quiet home.",
        "Write to us, call us or visit a shop near you whenever anything remains unclear to you.",
    ),
    (
        "家用 须知",
        "感谢您选择我们的产品，请在开始之前从头到尾仔细阅读本页须知并妥善保存以备日后查阅。",
        "请让儿童、宠物和蜡烛远离机器，并把收据与保修卡放在一起，便于以后联系附近的门店。",
        "每台 W20 洗衣机只要选好洗涤剂、软水或硬水以及半载衣量或满载，都能洗得干净。",
        "松软的毛巾、洁净的衬衫和清爽的床单能让家里整洁安静，也让每一天的心情更加舒畅。",
        "如有任何不清楚的地方，请随时写信、来电或到访离您最近的门店，我们很乐意为您解答。",
    ),
    family="reprints",
    authority="marketing",
)
W20_REPRINTS = tuple(replace(_LEAFLET, doc=f"w20-reprint-{n}") for n in range(1, 7))

F12_POWER = _unit(
    "f12-power",
    "freezer",
    (
        "F12 freezer power cut",
        "F12 freezer in a power cut.",
        "Food keeps for 18 hours.",
        "Only if the lid stays shut and the chest is well filled.",
    ),
    ("F12 冰柜 停电", "F12 冰柜停电时的说明。", "食物可保存 18 小时。", "仅当柜盖紧闭且装得较满。"),
    facts={"power-cut": Fact(1, "18 h", condition=2)},
)
F12_FROST = _unit(
    "f12-frost",
    "freezer",
    ("F12 freezer frost", "F12 freezer, thick frost.", "Defrost it twice a year."),
    ("F12 冰柜 结霜", "F12 冰柜霜层过厚。", "每年除霜两次。"),
)

G4_FLAME = _unit(
    "g4-flame",
    "hob",
    (
        "G4 hob yellow flame",
        "G4 hob with a yellow flame.",
        "Open the burner cover and clear the jet with a 2 mm brush.",
        "Only after a fitter has recorded that the gas is off.",
    ),
    (
        "G4 燃气灶 黄色 火焰",
        "G4 燃气灶出现黄色火焰。",
        "打开炉头盖，用 2 毫米刷子清理喷嘴。",
        "仅在安装工已登记关闭燃气之后。",
    ),
    facts={"yellow-flame": Fact(1, "2 mm", condition=2, documented=True)},
    version="r2",
    family="safety-bulletins",
    authority="safety-board",
)
G4_FLAME_OLD = replace(
    G4_FLAME,
    doc="g4-flame-2023",
    version="r1",
    lines={lang: lines[:2] for lang, lines in G4_FLAME.lines.items()},
    facts={"yellow-flame": Fact(1, "2 mm")},
    valid_from=date(2023, 1, 1),
    valid_until=OPEN,
)

D6_SALT = _unit(
    "d6-salt",
    "dishwasher",
    ("D6 dishwasher salt", "D6 dishwasher, first fill of salt.", "Pour in 1.2 kg of salt."),
    ("D6 洗碗机 专用盐", "D6 洗碗机首次加专用盐。", "倒入专用盐 1.2 千克。"),
    facts={"salt": Fact(1, "1.2 kg")},
)
D6_RINSE = _unit(
    "d6-rinse",
    "dishwasher",
    (
        "D6 dishwasher rinse aid",
        "D6 dishwasher, first fill of rinse aid.",
        "Pour in 110 ml of rinse aid.",
    ),
    ("D6 洗碗机 亮碟剂", "D6 洗碗机首次加亮碟剂。", "倒入亮碟剂 110 毫升。"),
    facts={"rinse-aid": Fact(1, "110 ml")},
)

S2_TANK = _unit(
    "s2-tank",
    "iron",
    ("S2 steam iron tank", "S2 steam iron, tank.", "Fill the tank with at most 1500 ml."),
    ("S2 蒸汽熨斗 水箱", "S2 蒸汽熨斗的水箱。", "水箱最多加水 1500 毫升。"),
    facts={"tank": Fact(1, "1500 ml")},
)
S2_SOLE = _unit(
    "s2-sole",
    "iron",
    ("S2 steam iron sole", "S2 steam iron, sole plate.", "Let it cool for 30 minutes."),
    ("S2 蒸汽熨斗 底板", "S2 蒸汽熨斗的底板。", "冷却 30 分钟。"),
)

C3_SERVICE = _unit(
    "c3-service",
    "cooktop",
    ("C3 cooktop test menu", "C3 cooktop, test menu.", "The test menu opens with code 7391."),
    ("C3 电磁炉 测试菜单", "C3 电磁炉的测试菜单。", "测试菜单用代码 7391 打开。"),
    facts={"test-menu": Fact(1, "7391")},
    family="service-manuals",
    authority="service-desk",
    acl=(SERVICE,),
)
C3_GLASS = _unit(
    "c3-glass",
    "cooktop",
    ("C3 cooktop glass", "C3 cooktop, glass.", "Scrape it while it is cold."),
    ("C3 电磁炉 玻璃面", "C3 电磁炉的玻璃面。", "冷却后再刮净。"),
)

UNITS = (
    V8_SOUND, V8_DUST, K31_BARE, KETTLE_FILTER, T5_PROBE, *T5_NOTES, W20_DOSE, *W20_NEAR,
    *W20_REPRINTS, F12_POWER, F12_FROST, G4_FLAME, G4_FLAME_OLD, D6_SALT, D6_RINSE, S2_TANK,
    S2_SOLE, C3_SERVICE, C3_GLASS,
)  # fmt: skip
