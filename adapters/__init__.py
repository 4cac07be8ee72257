"""Adapters: our objectives and metrics inside XGBoost, LightGBM and CatBoost. Each library is imported when used."""
