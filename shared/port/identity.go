package port

// Identity is an authenticated caller.
type Identity struct {
	Tenant    string
	Workspace string
	Subject   string
	Scopes    []string
}
