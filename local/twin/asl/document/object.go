package document

// indexed is the number of members from which an object uses a map for lookups. For fewer
// members a scan is faster.
const indexed = 12

// Member is a member of an object.
type Member struct {
	Key   string
	Value any
}

// Object is a JSON object that keeps the order of its members. The zero value
// is the empty object. It is safe for concurrent reads.
type Object struct {
	members []Member
	index   map[string]int
}

// NewObject returns an object of the members. A later duplicate replaces the
// value of the first.
func NewObject(members ...Member) *Object {
	o := &Object{members: make([]Member, 0, len(members))}
	for _, m := range members {
		o.Set(m.Key, m.Value)
	}
	return o
}

// Len returns the number of members.
func (o *Object) Len() int { return len(o.members) }

// Members returns the members in order. The caller must not change them.
func (o *Object) Members() []Member { return o.members }

// Get returns the value of key.
func (o *Object) Get(key string) (any, bool) {
	if at := o.find(key); at >= 0 {
		return o.members[at].Value, true
	}
	return nil, false
}

// Set sets the value of key, at the end if the key is new. It is only for
// objects under construction.
func (o *Object) Set(key string, value any) {
	if at := o.find(key); at >= 0 {
		o.members[at].Value = value
		return
	}
	o.members = append(o.members, Member{Key: key, Value: value})
	switch {
	case o.index != nil:
		o.index[key] = len(o.members) - 1
	case len(o.members) == indexed:
		o.index = make(map[string]int, 2*indexed)
		for i, m := range o.members {
			o.index[m.Key] = i
		}
	}
}

// With returns a copy of the object in which key has the value.
func (o *Object) With(key string, value any) *Object {
	changed := &Object{members: make([]Member, len(o.members), len(o.members)+1)}
	copy(changed.members, o.members)
	if at := o.find(key); at >= 0 {
		changed.members[at].Value = value
	} else {
		changed.members = append(changed.members, Member{Key: key, Value: value})
	}
	if len(changed.members) >= indexed {
		changed.index = make(map[string]int, len(changed.members))
		for i, m := range changed.members {
			changed.index[m.Key] = i
		}
	}
	return changed
}

func (o *Object) find(key string) int {
	if o.index != nil {
		if at, ok := o.index[key]; ok {
			return at
		}
		return -1
	}
	for i := range o.members {
		if o.members[i].Key == key {
			return i
		}
	}
	return -1
}
