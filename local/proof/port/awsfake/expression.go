package awsfake

import (
	"slices"
	"strings"
)

// expressions parses the expressions of one request, which share their placeholders.
//
// Attributes must be placeholders, because the fake does not know the reserved words. They must
// be top-level attributes.
type expressions struct {
	names  map[string]string
	values item
	used   map[string]bool

	tokens []string
	// err is the first error; parsing continues with zero values.
	err error
}

func newExpressions(names map[string]string, values item) *expressions {
	e := &expressions{names: names, used: map[string]bool{}}
	if names != nil && len(names) == 0 || values != nil && len(values) == 0 {
		e.fail("ExpressionAttributeNames and ExpressionAttributeValues must not be empty")
	}
	var err error
	if e.values, err = values.checked(); err != nil && e.err == nil {
		e.err = err
	}
	return e
}

func (e *expressions) fail(format string, args ...any) {
	if e.err == nil {
		e.err = invalid(format, args...)
	}
}

// finish returns the first error. It is an error if a placeholder is not used.
func (e *expressions) finish() error {
	for name := range e.names {
		if !e.used[name] {
			e.fail("value provided in ExpressionAttributeNames unused in expressions: %s", name)
		}
	}
	for name := range e.values {
		if !e.used[name] {
			e.fail("value provided in ExpressionAttributeValues unused in expressions: %s", name)
		}
	}
	return e.err
}

// tokenOf returns the token at the start of the text, or "" if there is no token.
func tokenOf(text string) string {
	isWord := func(b byte) bool {
		return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
	}
	end := 0
	if text[0] == '#' || text[0] == ':' {
		end = 1
	}
	begin := end
	for end < len(text) && isWord(text[end]) {
		end++
	}
	switch {
	case end > begin:
		return text[:end]
	case strings.HasPrefix(text, "<>"), strings.HasPrefix(text, "<="), strings.HasPrefix(text, ">="):
		return text[:2]
	case strings.IndexByte("=<>(),+.[]-", text[0]) >= 0:
		return text[:1]
	}
	return ""
}

// start splits an expression into tokens.
func (e *expressions) start(text string) {
	e.tokens = nil
	rest := strings.TrimSpace(text)
	if rest == "" {
		e.fail("invalid expression: the expression can not be empty")
	}
	for rest != "" {
		token := tokenOf(rest)
		if token == "" {
			e.fail("invalid expression: syntax error near %q", rest)
			return
		}
		e.tokens = append(e.tokens, token)
		rest = strings.TrimSpace(rest[len(token):])
	}
}

// end checks that no token is left.
func (e *expressions) end() {
	if len(e.tokens) > 0 {
		e.fail("invalid expression: syntax error near %q", strings.Join(e.tokens, " "))
	}
}

func (e *expressions) peek() string {
	if len(e.tokens) == 0 || e.err != nil {
		return ""
	}
	return strings.ToUpper(e.tokens[0])
}

func (e *expressions) next() string {
	if len(e.tokens) == 0 || e.err != nil {
		e.fail("invalid expression: it ends too early")
		return ""
	}
	token := e.tokens[0]
	e.tokens = e.tokens[1:]
	return token
}

// accept consumes the next token if it is one of tokens.
func (e *expressions) accept(tokens ...string) (string, bool) {
	if next := e.peek(); next != "" && slices.Contains(tokens, next) {
		e.next()
		return next, true
	}
	return "", false
}

func (e *expressions) expect(token string) {
	if _, ok := e.accept(token); !ok {
		e.fail("invalid expression: want %q near %q", token, strings.Join(e.tokens, " "))
	}
}

// attribute parses an attribute name.
func (e *expressions) attribute() string {
	token := e.next()
	if !strings.HasPrefix(token, "#") {
		e.fail("the fake wants an attribute name as a placeholder (#name), got %q", token)
		return ""
	}
	name, ok := e.names[token]
	if !ok {
		e.fail("an expression attribute name used in the expression is not defined: %s", token)
	}
	e.used[token] = true
	if next := e.peek(); next == "." || next == "[" {
		e.fail("the fake supports attributes of the top level only, got %s%s", token, next)
	}
	return name
}

// constant parses a value placeholder and returns its value.
func (e *expressions) constant() value {
	token := e.next()
	v, ok := e.values[token]
	if !ok {
		e.fail("an expression attribute value used in the expression is not defined: %s", token)
	}
	e.used[token] = true
	return v
}

// operand returns a value of an item, or false if the item does not have it.
type operand func(item) (value, bool)

func (e *expressions) operand() operand {
	if strings.HasPrefix(e.peek(), ":") {
		v := e.constant()
		return func(item) (value, bool) { return v, true }
	}
	name := e.attribute()
	return func(is item) (value, bool) {
		v, ok := is[name]
		return v, ok
	}
}

// projection parses the names of the attributes to return; nil means all.
func (e *expressions) projection(text *string) map[string]bool {
	if text == nil {
		return nil
	}
	e.start(*text)
	shown := map[string]bool{}
	for more := true; more && e.err == nil; _, more = e.accept(",") {
		name := e.attribute()
		if shown[name] {
			e.fail("two document paths overlap with each other; both are %s", name)
		}
		shown[name] = true
	}
	e.end()
	return shown
}
