package path

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// condition is the text between "[?(" and ")]".
type condition interface {
	holds(item, top any) bool
}

type (
	bothCondition    struct{ a, b condition }
	eitherCondition  struct{ a, b condition }
	notCondition     struct{ a condition }
	existsCondition  struct{ a operand }
	compareCondition struct {
		operator string
		a, b     operand
	}
	matchCondition struct {
		a       operand
		pattern *regexp.Regexp
	}
)

// operand is a literal, or steps from the item ("@") or the document ("$").
type operand struct {
	literal any
	isPath  bool
	fromTop bool
	steps   []step
}

func (o operand) value(item, top any) (found any, ok bool) {
	if !o.isPath {
		return o.literal, true
	}
	if o.fromTop {
		item = top
	}
	walk(o.steps, item, top, func(v any) {
		if !ok {
			found, ok = v, true
		}
	})
	return found, ok
}

func (c bothCondition) holds(item, top any) bool {
	return c.a.holds(item, top) && c.b.holds(item, top)
}

func (c eitherCondition) holds(item, top any) bool {
	return c.a.holds(item, top) || c.b.holds(item, top)
}

func (c notCondition) holds(item, top any) bool { return !c.a.holds(item, top) }

func (c existsCondition) holds(item, top any) bool {
	_, ok := c.a.value(item, top)
	return ok
}

func (c matchCondition) holds(item, top any) bool {
	value, _ := c.a.value(item, top)
	text, ok := value.(string)
	return ok && c.pattern.MatchString(text)
}

func (c compareCondition) holds(item, top any) bool {
	a, okA := c.a.value(item, top)
	b, okB := c.b.value(item, top)
	if !okA || !okB {
		return c.operator == "!=" && okA != okB
	}
	switch c.operator {
	case "==":
		return document.Equal(a, b)
	case "!=":
		return !document.Equal(a, b)
	case "in", "nin":
		list, _ := b.([]any)
		for _, one := range list {
			if document.Equal(a, one) {
				return c.operator == "in"
			}
		}
		return c.operator == "nin"
	}
	var order int
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok {
			return false
		}
		order = document.Compare(x, y)
	case string:
		y, ok := b.(string)
		if !ok {
			return false
		}
		order = strings.Compare(x, y)
	default:
		return false
	}
	switch c.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func (p *parser) filter() (step, error) {
	p.at++
	p.space()
	start := p.at
	if p.at >= len(p.text) || p.text[p.at] != '(' {
		return nil, p.fail("expected '('")
	}
	c, err := p.either()
	if err != nil {
		return nil, err
	}
	source := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(p.text[start:p.at]), "("), ")")
	return filterStep{condition: c, source: source}, nil
}

func (p *parser) either() (condition, error) {
	c, err := p.both()
	for err == nil && p.operator("||") {
		var next condition
		next, err = p.both()
		c = eitherCondition{a: c, b: next}
	}
	return c, err
}

func (p *parser) both() (condition, error) {
	c, err := p.single()
	for err == nil && p.operator("&&") {
		var next condition
		next, err = p.single()
		c = bothCondition{a: c, b: next}
	}
	return c, err
}

func (p *parser) operator(token string) bool {
	p.space()
	return p.take(token)
}

func (p *parser) single() (condition, error) {
	if p.operator("!") {
		c, err := p.single()
		return notCondition{a: c}, err
	}
	if p.operator("(") {
		c, err := p.either()
		if err == nil && !p.operator(")") {
			err = p.fail("expected ')'")
		}
		return c, err
	}
	a, err := p.operand()
	if err != nil {
		return nil, err
	}
	if p.operator("=~") {
		pattern, err := p.pattern()
		return matchCondition{a: a, pattern: pattern}, err
	}
	for _, token := range []string{"==", "!=", "<=", ">=", "<", ">", "nin ", "in ", "nin[", "in["} {
		if !p.operator(token) {
			continue
		}
		if strings.HasSuffix(token, "[") {
			p.at--
		}
		b, err := p.operand()
		return compareCondition{operator: strings.TrimRight(token, " ["), a: a, b: b}, err
	}
	if !a.isPath {
		return nil, p.fail("expected an operator")
	}
	return existsCondition{a: a}, nil
}

func (p *parser) operand() (operand, error) {
	p.space()
	if p.at >= len(p.text) {
		return operand{}, p.fail("expected a value")
	}
	switch c := p.text[p.at]; {
	case c == '@' || c == '$':
		p.at++
		steps, _, err := p.steps(func() bool {
			return p.at == len(p.text) || p.text[p.at] != '.' && p.text[p.at] != '['
		})
		return operand{isPath: true, fromTop: c == '$', steps: steps}, err
	case c == '\'' || c == '"':
		text, err := p.quoted()
		return operand{literal: text}, err
	case c == '[':
		return p.list()
	}
	for word, value := range map[string]any{"true": true, "false": false, "null": nil} {
		if p.take(word) {
			return operand{literal: value}, nil
		}
	}
	start := p.at
	for p.at < len(p.text) && strings.ContainsRune("+-.0123456789eE", rune(p.text[p.at])) {
		p.at++
	}
	number := p.text[start:p.at]
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		p.at = start
		return operand{}, p.fail("expected a value")
	}
	return operand{literal: json.Number(number)}, nil
}

func (p *parser) list() (operand, error) {
	p.at++
	list := []any{}
	for !p.operator("]") {
		if len(list) > 0 && !p.operator(",") {
			return operand{}, p.fail("expected ',' or ']'")
		}
		item, err := p.operand()
		if err != nil {
			return operand{}, err
		}
		if item.isPath {
			return operand{}, p.fail("a list holds literals")
		}
		list = append(list, item.literal)
	}
	return operand{literal: list}, nil
}

// pattern parses /regular expression/flags. As in Java's matches, it must match
// the whole text.
func (p *parser) pattern() (*regexp.Regexp, error) {
	p.space()
	if !p.take("/") {
		return nil, p.fail("expected '/'")
	}
	start := p.at
	for p.at < len(p.text) && p.text[p.at] != '/' {
		if p.text[p.at] == '\\' {
			p.at++
		}
		p.at++
	}
	if p.at >= len(p.text) {
		return nil, p.fail("expected '/'")
	}
	source := p.text[start:p.at]
	p.at++
	flags := ""
	for p.at < len(p.text) && strings.ContainsRune("ims", rune(p.text[p.at])) {
		flags += string(p.text[p.at])
		p.at++
	}
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	pattern, err := regexp.Compile(flags + "^(?:" + source + ")$")
	if err != nil {
		return nil, p.fail("invalid regular expression")
	}
	return pattern, nil
}
