package job

// Definition is what a stored job says about its runs.
type Definition struct {
	Name string `json:"name,omitempty"`
}
