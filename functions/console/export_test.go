package console

// Recheck is recheck, for tests.
const Recheck = recheck
