package task

import (
	"fmt"
	"strings"
)

// SyntaxError is a mistake in an expression.
type SyntaxError struct {
	Offset int
	Text   string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("at %d: %s", e.Offset, e.Text) }

// Kinds of tokens. A word is a name or one of the language's words.
const (
	End = iota
	Word
	Text
	Number
	Sign // = != < <= > >= ~ ( ) ,
)

// Token is a piece of an expression. Text holds a text's value, otherwise what was written.
type Token struct {
	Kind   int
	Text   string
	Offset int
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// Lex cuts an expression into tokens; the last one is of kind End.
func Lex(source string) ([]Token, error) {
	var tokens []Token
	at := 0
	for at < len(source) {
		c := source[at]
		start := at
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			at++
			continue
		case isLetter(c):
			for at < len(source) && (isLetter(source[at]) || isDigit(source[at]) || strings.IndexByte("_-.", source[at]) >= 0) {
				at++
			}
			tokens = append(tokens, Token{Word, source[start:at], start})
		case isDigit(c) || c == '-' && at+1 < len(source) && isDigit(source[at+1]):
			at++
			for at < len(source) && isDigit(source[at]) {
				at++
			}
			if at+1 < len(source) && source[at] == '.' && isDigit(source[at+1]) {
				at++
				for at < len(source) && isDigit(source[at]) {
					at++
				}
			}
			tokens = append(tokens, Token{Number, source[start:at], start})
		case c == '"':
			value, end, err := lexText(source, start)
			if err != nil {
				return nil, err
			}
			at = end
			tokens = append(tokens, Token{Text, value, start})
		case strings.IndexByte("=<>!~(),", c) >= 0:
			at++
			if at < len(source) && source[at] == '=' && strings.IndexByte("<>!", c) >= 0 {
				at++
			}
			if source[start:at] == "!" {
				return nil, &SyntaxError{start, "! needs a ="}
			}
			tokens = append(tokens, Token{Sign, source[start:at], start})
		default:
			return nil, &SyntaxError{start, "no such character"}
		}
	}
	return append(tokens, Token{End, "", len(source)}), nil
}

// lexText reads a text that begins at start and gives its value and the offset behind it.
func lexText(source string, start int) (string, int, error) {
	end := strings.IndexByte(source[start+1:], '"')
	if end < 0 {
		return "", 0, &SyntaxError{start, "a text is never closed"}
	}
	return source[start+1 : start+1+end], start + end + 2, nil
}
