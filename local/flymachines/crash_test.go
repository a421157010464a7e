package flymachines_test

func serve(string) int { return 1 }
