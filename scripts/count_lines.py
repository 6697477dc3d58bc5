"""Print the lines of code per package: growth without function is a defect."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def main() -> None:
    totals: dict[str, int] = {}
    files = [*ROOT.glob("flambeau/**/*.py"), *ROOT.glob("csrc/**/*.[ch]*")]
    for file in files:
        parts = file.relative_to(ROOT).parts
        package = "/".join(parts[:2]) if len(parts) > 2 else parts[0]
        totals[package] = totals.get(package, 0) + lines(file)
    for package, count in sorted(totals.items()):
        print(f"{count:7d}  {package}")
    print(f"{sum(totals.values()):7d}  in all")
    longest = sorted(files, key=lines, reverse=True)[:5]
    print("longest files:", ", ".join(f"{f.relative_to(ROOT)} ({lines(f)})" for f in longest))


if __name__ == "__main__":
    main()
