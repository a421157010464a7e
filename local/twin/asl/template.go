package asl

import (
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
	"github.com/sortie-dev/sortie/local/twin/asl/intrinsic"
	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

// template is a payload template: JSON in which the values of keys that end in
// ".$" are paths or calls.
type template struct {
	// Exactly one of these is set.
	literal any
	value   *expression
	members []templateMember
	items   []*template

	kind templateKind
}

type templateKind int

const (
	literalTemplate templateKind = iota
	valueTemplate
	objectTemplate
	arrayTemplate
)

type templateMember struct {
	key   string // without ".$"
	value *template
}

// template parses the payload template under key, or returns nil.
func (r *reader) template(key string) *template {
	value, ok := r.get(key)
	if !ok {
		return nil
	}
	return r.parseTemplate(r.at(key), value)
}

func (p *problems) parseTemplate(place string, value any) *template {
	switch v := value.(type) {
	case *document.Object:
		return p.parseObjectTemplate(place, v)
	case []any:
		t := &template{kind: arrayTemplate}
		dynamic := false
		for i, item := range v {
			inner := p.parseTemplate(fmt.Sprintf("%s[%d]", place, i), item)
			dynamic = dynamic || inner.kind != literalTemplate
			t.items = append(t.items, inner)
		}
		if dynamic {
			return t
		}
	}
	return &template{literal: value}
}

func (p *problems) parseObjectTemplate(place string, object *document.Object) *template {
	t := &template{kind: objectTemplate}
	dynamic := false
	seen := map[string]bool{}
	for _, m := range object.Members() {
		key, computed := strings.CutSuffix(m.Key, ".$")
		at := join(place, m.Key)
		if seen[key] {
			p.add(at, "duplicate key %q", key)
		}
		seen[key] = true
		var inner *template
		if computed {
			inner = &template{kind: valueTemplate, value: &expression{}}
			if text, ok := m.Value.(string); !ok {
				p.add(at, "must be a path or an intrinsic function call")
			} else if e := p.parseExpression(at, text); e != nil {
				inner.value = e
			}
		} else {
			inner = p.parseTemplate(at, m.Value)
		}
		dynamic = dynamic || inner.kind != literalTemplate
		t.members = append(t.members, templateMember{key: key, value: inner})
	}
	if !dynamic {
		return &template{literal: object}
	}
	return t
}

// parseExpression parses a path or a call. It returns nil for any other text.
func (p *problems) parseExpression(place, text string) *expression {
	if !strings.HasPrefix(strings.TrimSpace(text), intrinsic.Prefix) {
		if found := p.parsePath(place, text); found != nil {
			return &expression{text: text, path: found}
		}
		return nil
	}
	call, err := intrinsic.Parse(text)
	if err != nil {
		p.add(place, "%v", err)
		return nil
	}
	return &expression{text: text, call: call}
}

// evaluate evaluates the template. data is the value of "$".
func (t *template) evaluate(f *frame, env *Env, data any) (any, error) {
	switch t.kind {
	case valueTemplate:
		return t.value.evaluate(f, env, data)
	case objectTemplate:
		object := document.NewObject()
		for _, m := range t.members {
			value, err := m.value.evaluate(f, env, data)
			if err != nil {
				return nil, inField(err, m.key+".$")
			}
			object.Set(m.key, value)
		}
		return object, nil
	case arrayTemplate:
		items := make([]any, len(t.items))
		for i, item := range t.items {
			value, err := item.evaluate(f, env, data)
			if err != nil {
				return nil, err
			}
			items[i] = value
		}
		return items, nil
	default:
		return t.literal, nil
	}
}

func (e *expression) evaluate(f *frame, env *Env, data any) (any, error) {
	find := func(p path.Path) (any, error) {
		value, err := f.find(env, p, data)
		if err != nil {
			return nil, &missingError{path: p, data: data, cause: err}
		}
		return value, nil
	}
	switch {
	case e.path != nil:
		return find(*e.path)
	case e.call != nil:
		value, err := e.call.Eval(intrinsic.Env{Find: find, Random: env.Random})
		if failed := (*intrinsic.Error)(nil); asError(err, &failed) {
			return nil, f.failure(errorIntrinsic, "The function '%s' had the following error: %s", e.text, failed.What)
		}
		return value, err
	default:
		return e.literal, nil
	}
}

// missingError reports a definite path of a template without a value.
type missingError struct {
	path  path.Path
	field string
	data  any
	cause error
}

func (e *missingError) Error() string {
	return fmt.Sprintf("The JSONPath '%s' specified for the field '%s' could not be found in the input '%s'",
		e.path, e.field, document.String(e.data))
}

// inField sets the field of a missingError, unless an inner call has set it.
func inField(err error, field string) error {
	if missing := (*missingError)(nil); asError(err, &missing) && missing.field == "" {
		missing.field = field
	}
	return err
}
