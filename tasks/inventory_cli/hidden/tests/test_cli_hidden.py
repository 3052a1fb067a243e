import subprocess
import sys

import pytest

HEADER = "date,sku,kind,quantity,price\n"


def run(*args):
    done = subprocess.run([sys.executable, "-m", "inventory", *map(str, args)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def csv(tmp_path):
    def write(text, name="m.csv"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write


def test_quoted_fields_and_extra_columns(csv):
    file = csv(
        'note,price,sku,kind,quantity,date\n"a, ""b""\nc",1.50," wid,get ",in,2,2024-01-01\nlast,x,y,in,1,2024-01-01\n'
    )
    code, out, _ = run("check", file)
    assert code == 1
    assert out.startswith(f"{file}:4: ")
    good = csv('note,price,sku,kind,quantity,date\n"a\nb",1.50,"wid""get",in,2,2024-01-01\n')
    assert run("stock", good) == (0, 'WID"GET,2,3.00\n'.replace('WID"GET', '"WID""GET"'), "")


def test_byte_order_mark_crlf_and_blank_lines(csv):
    file = csv(b"\xef\xbb\xbfdate,sku,kind,quantity,price\r\n\r\n2024-01-01,a,in,2,1\r\n\r\n")
    assert run("check", file) == (0, "OK 1 movements\n", "")


@pytest.mark.parametrize(
    "record",
    [
        "2024-1-01,a,in,1,1",
        "20240101,a,in,1,1",
        "2024-01-01, ,in,1,1",
        "2024-01-01,a,IN,1,1",
        "2024-01-01,a,in,1.0,1",
        "2024-01-01,a,in,1,1.005",
        "2024-01-01,a,in,1,-1",
        "2024-01-01,a,in,1,NaN",
        "2024-01-01,a,in,1,1e2",
        "2024-01-01,a,in,1,",
        "2024-01-01,a,out,1,1",
        "2024-01-01,a,count,-1,",
        "2024-01-01,a,out,0,",
        "2024-01-01,a,out",
    ],
)
def test_bad_records(csv, record):
    file = csv(HEADER + "2024-01-01,a,in,9,1\n" + record + "\n")
    code, out, err = run("check", file)
    assert (code, err) == (1, "")
    assert out.startswith(f"{file}:3: ") and out.count("\n") == 1
    code, out, err = run("stock", file)
    assert (code, out) == (1, "")
    assert err.startswith(f"{file}:3: ")


def test_usage(csv, tmp_path):
    assert run()[0] == 2
    assert run("fly", csv(HEADER))[0] == 2
    assert run("stock")[0] == 2
    assert run("stock", tmp_path / "none.csv")[0] == 2
    assert run("report", csv(HEADER), "--month", "2024-13")[0] == 2
    file = csv("date,sku,kind,price\n")
    code, _, err = run("check", file)
    assert code == 2 and err == f"{file}:1: missing column quantity\n"


def test_order_by_date_over_files(csv):
    late = csv(HEADER + "2024-03-01,a,out,3,\n", "late.csv")
    early = csv(HEADER + "2024-02-01,a,in,2,2.00\n2024-01-01,a,in,2,1.00\n", "early.csv")
    assert run("stock", late, early) == (0, "A,1,2.00\n", "")


def test_fifo_cost_is_exact(csv):
    file = csv(HEADER + "".join(f"2024-01-01,a,in,1,0.1{n % 10}\n" for n in range(30)) + "2024-01-02,a,out,30,\n")
    _, out, _ = run("report", file)
    assert out.splitlines()[1] == "A,30,30,0,4.35,0,0.00"
    assert run("stock", file) == (0, "", "")


def test_counts(csv):
    file = csv(
        HEADER
        + "2024-01-01,a,in,10,2.00\n2024-01-02,a,in,10,3.00\n2024-01-03,a,out,15,\n"
        + "2024-01-04,a,count,8,\n2024-01-05,a,count,6,\n2024-01-06,b,count,4,\n"
    )
    _, out, _ = run("report", file)
    assert out.splitlines()[1:] == ["A,20,15,-1,35.00,6,18.00", "B,0,0,-4,0.00,4,0.00", "TOTAL,20,15,-5,35.00,10,18.00"]


def test_a_month_shows_only_what_moved_in_it(csv):
    file = csv(HEADER + "2024-01-01,a,in,4,1.00\n2024-02-01,b,in,1,1.00\n2024-02-02,a,out,1,\n2024-03-01,a,out,9,\n")
    code, out, _ = run("report", file, "--month", "2024-02")
    assert code == 0
    assert out.splitlines()[1:] == ["A,0,1,0,1.00,3,3.00", "B,1,0,0,0.00,1,1.00", "TOTAL,1,1,0,1.00,4,4.00"]
    assert run("report", file)[0] == 1
