package label

import "errors"

// Query is a selector with its text, for filters that are stored. The zero value selects all. One
// with a malformed text selects nothing.
type Query struct {
	text, problem string
	selector      Selector
}

// QueryOf returns the query with the text of a selector; see Parse.
func QueryOf(text string) Query {
	q := Query{text: text}
	var err error
	if q.selector, err = Parse(text); err != nil {
		q.problem = err.Error()
	}
	return q
}

// Check returns an error if the text is malformed.
func (q Query) Check() error {
	if q.problem == "" {
		return nil
	}
	return errors.New(q.problem)
}

// IsZero reports whether the query has no text.
func (q Query) IsZero() bool { return q.text == "" }

// Equal reports whether the queries have the same text.
func (q Query) Equal(other Query) bool { return q.text == other.text }

// String returns the text.
func (q Query) String() string { return q.text }

// Matches reports whether labels meet all requirements.
func (q Query) Matches(labels map[string]string) bool {
	return q.problem == "" && q.selector.Matches(labels)
}

// MarshalText implements encoding.TextMarshaler.
func (q Query) MarshalText() ([]byte, error) { return []byte(q.text), nil }

// UnmarshalText implements encoding.TextUnmarshaler. A malformed text is no error; see Check.
func (q *Query) UnmarshalText(text []byte) error {
	*q = QueryOf(string(text))
	return nil
}
