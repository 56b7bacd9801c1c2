// The sim program plays worlds of bad networks and dying processes.
package main

func main() {}
