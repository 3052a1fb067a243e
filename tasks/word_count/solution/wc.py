import collections
import re
import sys


def main():
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", sys.stdin.read().lower())
    ranked = sorted(collections.Counter(words).items(), key=lambda item: (-item[1], item[0]))
    for word, count in ranked[:limit]:
        print(count, word)


main()
