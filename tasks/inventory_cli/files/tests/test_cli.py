import subprocess
import sys
from pathlib import Path

SMALL = str(Path(__file__).parent.parent / "data" / "small.csv")


def run(*args):
    done = subprocess.run([sys.executable, "-m", "inventory", *args], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_check():
    assert run("check", SMALL) == (0, "OK 6 movements\n", "")


def test_stock():
    assert run("stock", SMALL) == (0, "BOLT,30,3.60\nNUT,45,2.25\n", "")


def test_report():
    code, out, _ = run("report", SMALL)
    assert code == 0
    assert out.splitlines() == [
        "sku,in,out,shrinkage,cost_of_sales,stock,value",
        "BOLT,150,120,0,12.40,30,3.60",
        "NUT,50,0,5,0.00,45,2.25",
        "TOTAL,200,120,5,12.40,75,5.85",
    ]


def test_report_of_a_month():
    code, out, _ = run("report", SMALL, "--month", "2024-01")
    assert code == 0
    assert out.splitlines()[1:] == [
        "BOLT,100,30,0,3.00,70,7.00",
        "NUT,50,0,0,0.00,50,2.50",
        "TOTAL,150,30,0,3.00,120,9.50",
    ]


def test_errors_name_the_line(tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("date,sku,kind,quantity,price\n2024-02-30,a,in,1,1\n2024-01-01,a,lost,1,\n2024-01-01,a,in,0,1\n")
    code, out, _ = run("check", str(bad))
    assert code == 1
    assert [line.split(": ")[0] for line in out.splitlines()] == [f"{bad}:{n}" for n in (2, 3, 4)]


def test_taking_too_much(tmp_path):
    file = tmp_path / "m.csv"
    file.write_text("date,sku,kind,quantity,price\n2024-01-01,a,in,5,1.00\n2024-01-02,a,out,6,\n")
    assert run("stock", str(file)) == (1, "", "A: only 5 in stock on 2024-01-02\n")
