# ["10s", "20s", "40s", "1m", "1m"]: six attempts have five delays.
output "schedule" {
  value = provider::redeliver::build_schedule("exponential", { attempts = 6, initial = "10s", max = "1m" })
}

# ["30s", "30s"]
output "fixed" {
  value = provider::redeliver::build_schedule("fixed", { attempts = 3, delay = "30s" })
}
