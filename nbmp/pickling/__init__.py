"""Objects as messages: functions by value, shared arrays by handle, large private arrays by one copy."""
