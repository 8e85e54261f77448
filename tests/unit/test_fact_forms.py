"""Numbers, dates and times in every form that they are written in: equal ones are spelled alike."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore.answers import facts as f
from ragcore.answers.dates import parts
from reference_numerals import zh

# --- equal facts are spelled alike


def keys(text, *kinds):
    return [(x.value, x.unit) for x in f.facts(text, kinds or f.KINDS)]


@pytest.mark.parametrize(
    "forms",
    [
        [
            "1,000",
            "1000",
            "１０００",
            "１，０００",
            "1000.0",
            "一千",
            "one thousand",
            "1e3",
            "a thousand",
        ],
        ["12.5%", "12.5 %", "１２．５％", "12.5 percent", "12.50 per cent", "百分之十二点五"],
        [
            "¥100",
            "￥100",
            "100元",
            "100 yuan",
            "RMB 100",
            "人民币100元",
            "一百元",
            "CNY100",
            "100块钱",
        ],
        ["$5M", "US$5 million", "5 million dollars", "500万美元", "5,000,000 USD", "五百万美元"],
        ["1.2万", "12,000", "12 thousand", "一万二千", "一万二", "12000"],
        ["3亿5千万", "350 million", "三亿五千万", "3.5亿", "350,000,000"],
        ["1/3", "三分之一", "3分之1"],
        ["-5", "−5", "minus 5", "负5", "负五", "零下5"],
        ["3%", "百分之三", "3 pct"],
        ["3‰", "千分之三"],
        ["3 percentage points", "3个百分点"],
        ["100%", "百分之百"],
        ["½", "1/2", "0.5", "二分之一"],
        ["20", "二十", "twenty"],
        ["1,00,000", "100000", "十万"],
    ],
)
def test_numbers__equal_ones_are_spelled_alike(forms):
    assert {tuple(keys(form)) for form in forms} == {tuple(keys(forms[0]))}
    assert len(keys(forms[0])) == 1
    for form in forms:
        around = keys(f"共有 {form}。") if not form.isascii() else keys(f"It was {form}, then.")
        assert around == keys(forms[0]), form


@pytest.mark.parametrize(
    ("value", "forms"),
    [
        (
            "2025-07-01",
            [
                "2025-07-01",
                "1 July 2025",
                "July 1, 2025",
                "July 1st 2025",
                "1st of July, 2025",
                "2025年7月1日",
                "2025 年 7 月 1 日",
                "二〇二五年七月一日",
                "２０２５年７月１日",
                "2025/7/1",
                "2025.7.1",
                "Jul. 1, 2025",
                "1-Jul-2025",
                "2025年7月1号",
                "二零二五年七月一日",
                "2025 July 1",
                "july 1 2025",
            ],
        ),
        (
            "2025-12-31",
            ["31 Dec 2025", "二〇二五年十二月三十一日", "31/12/2025", "12/31/2025", "31.12.2025"],
        ),
        ("2025-01-07|2025-07-01", ["07/01/2025", "7/1/2025", "1/7/2025", "01-07-2025"]),
        ("2025-05-05", ["5/5/2025", "May 5, 2025"]),
        (
            "2025-07",
            ["July 2025", "2025年7月", "2025-07", "2025年7月份", "Jul 2025", "二〇二五年七月"],
        ),
        ("--07-01", ["July 1", "1 July", "7月1日", "七月一日", "the 1st of July", "July 1st"]),
        ("--07", ["July", "7月", "七月"]),
        ("2025", ["2025年", "二〇二五年"]),
        ("1970s", ["1970s", "1970's", "20世纪70年代", "二十世纪七十年代", "1970年代"]),
        ("18c", ["18th century", "18世纪", "十八世纪", "eighteenth-century"]),
    ],
)
def test_dates__are_one_form_and_no_numbers(value, forms):
    for form in forms:
        for text in (form, f"（{form}）", f"on {form}, we"):
            found = f.facts(text)
            assert [(x.kind, x.value) for x in found] == [("date", value)], text


@pytest.mark.parametrize(
    ("value", "forms"),
    [
        (
            "15:30",
            ["15:30", "3:30 pm", "3:30 p.m.", "15时30分", "下午3点30分", "下午三点半", "15点30分"],
        ),
        ("15:00", ["3pm", "3 p.m.", "15:00", "下午3点", "下午三点"]),
        ("00:05", ["12:05 am", "00:05", "0:05"]),
        ("10:30:05", ["10:30:05", "10时30分5秒"]),
        ("12:00", ["12 pm", "中午12点", "12:00"]),
    ],
)
def test_times__are_one_form(value, forms):
    for form in forms:
        assert [(x.kind, x.value) for x in f.facts(form)] == [("time", value)], form


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)))
def test_dates__of_every_day(day):
    iso = day.isoformat()
    zh_year = "".join("〇一二三四五六七八九"[int(c)] for c in str(day.year))
    zh_day = zh(day.day).removeprefix("一") if 10 <= day.day < 20 else zh(day.day)
    zh_month = zh(day.month).removeprefix("一") if day.month >= 10 else zh(day.month)
    name = day.strftime("%B")
    for text in (
        iso,
        iso.replace("-", "/"),
        f"{day.year}年{day.month}月{day.day}日",
        f"{zh_year}年{zh_month}月{zh_day}日",
        f"{day.day} {name} {day.year}",
        f"{name} {day.day}, {day.year}",
        f"{name[:3]} {day.day} {day.year}",
    ):
        assert [(x.kind, x.value) for x in f.facts(text)] == [("date", iso)], text
    assert set(parts(iso)) == {iso, iso[:4], iso[:7], f"--{iso[5:]}", f"--{iso[5:7]}"}
